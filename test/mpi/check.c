#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const form_names[FORM_COUNT] = {"blocking", "nonblocking", "persistent"};

enum { PERSISTENT_STARTS = 3 };

void check_failed(const char *file, int source_line, const char *format, ...)
{
    const char *base = strrchr(file, '/');
    char line[512];
    int rank = -1, length;
    va_list arguments;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    length = snprintf(line, sizeof(line), "%s:%d: rank %d: ", base != NULL ? base + 1 : file,
                      source_line, rank);
    va_start(arguments, format);
    vsnprintf(line + length, sizeof(line) - (size_t)length, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s\n", line); /* whole: all ranks may say something at the same time */
    MPI_Abort(MPI_COMM_WORLD, 1);
    __builtin_unreachable();
}

struct run run_begin(enum form form)
{
    return (struct run){.form = form, .request = MPI_REQUEST_NULL};
}

bool run_next(struct run *run)
{
    int rounds = run->form == FORM_PERSISTENT ? PERSISTENT_STARTS : 1;

    if (run->round < rounds) {
        run->round++;
        return true;
    }
    if (run->request != MPI_REQUEST_NULL) {
        MPI_Request_free(&run->request);
    }
    return false;
}

void run_wait(struct run *run)
{
    if (run->form == FORM_BLOCKING) {
        return;
    }
    if (run->form == FORM_PERSISTENT) {
        MPI_Start(&run->request);
    }
    if (run->round % 2 == 0) { /* the other way to finish a request */
        int done = 0;
        while (!done) {
            MPI_Test(&run->request, &done, MPI_STATUS_IGNORE);
        }
    } else {
        MPI_Wait(&run->request, MPI_STATUS_IGNORE);
    }
}
