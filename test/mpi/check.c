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

void parameter_set(const char *name, int number)
{
    int index, count, length = 0, verbosity, no_text = 0, bind, scope;
    MPI_T_cvar_handle handle;
    MPI_Datatype type;
    MPI_T_enum names;
    bool flag = number != 0;

    CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS,
          "there is no %s: is ibshift in the list?", name);
    MPI_T_cvar_get_info(index, NULL, &length, &verbosity, &type, &names, NULL, &no_text, &bind,
                        &scope);
    CHECK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS &&
              MPI_T_cvar_write(handle, type == MPI_INT ? (void *)&number : (void *)&flag) ==
                  MPI_SUCCESS,
          "%s cannot be written", name);
    MPI_T_cvar_handle_free(&handle);
}

/* MPI_COMM_WORLD's, where a variable belongs to a communicator. */
MPI_Comm *bound_to(MPI_Comm comm)
{
    static union {
        MPI_Comm comm;
        char room[4096];
    } bound;

    bound.comm = comm;
    return &bound.comm;
}

struct counter counter_begin(const char *name)
{
    struct counter c;
    int index, count;

    MPI_T_pvar_session_create(&c.session);
    CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS,
          "there is no %s", name);
    CHECK(MPI_T_pvar_handle_alloc(c.session, index, bound_to(MPI_COMM_WORLD), &c.handle, &count) ==
              MPI_SUCCESS,
          "%s cannot be bound", name);
    (void)MPI_T_pvar_start(c.session, c.handle); /* some always run */
    return c;
}

unsigned long long counter_read(const struct counter *counter)
{
    unsigned long long result = 0;

    CHECK(MPI_T_pvar_read(counter->session, counter->handle, &result) == MPI_SUCCESS,
          "a counter cannot be read");
    return result;
}

unsigned long long counter_end(struct counter *counter)
{
    unsigned long long result = counter_read(counter);

    MPI_T_pvar_handle_free(counter->session, &counter->handle);
    MPI_T_pvar_session_free(&counter->session);
    return result;
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
