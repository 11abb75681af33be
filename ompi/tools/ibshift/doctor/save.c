/* The burst in a parameter file of Open MPI: other nodes' doctors may have written there before. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "doctor/doctor.h"
#include "options.h"

#define PARAMETER "coll_ibshift_burst"

/* Whether the line sets the parameter, whatever to: `value`, 0 where it is no number. */
static bool is_burst(const char *line, long *value)
{
    size_t length = strlen(PARAMETER);
    const char *at = line + strspn(line, " \t");

    if (strncmp(at, PARAMETER, length) != 0) {
        return false;
    }
    at += length + strspn(at + length, " \t");
    *value = *at == '=' ? strtol(at + 1, NULL, 10) : 0;
    return *at == '=';
}

/* All other lines, and last the most of what was there and what is new. */
static void copy(FILE *from, FILE *to, uint32_t burst)
{
    char *line = NULL;
    size_t room = 0;
    long most = burst;
    bool ends = true;

    while (from != NULL && getline(&line, &room, from) > 0) {
        long before;
        if (is_burst(line, &before)) {
            most = before > most ? before : most;
        } else {
            ends = line[strlen(line) - 1] == '\n';
            (void)fputs(line, to);
        }
    }
    (void)fprintf(to, "%s" PARAMETER " = %ld\n", ends ? "" : "\n", most);
    free(line);
}

int doctor_save(const char *path, uint32_t burst)
{
    struct stat before;
    bool is_there = stat(path, &before) == 0 && S_ISREG(before.st_mode);
    FILE *from = is_there ? fopen(path, "r") : NULL;
    struct output out;
    int rc = is_there && from == NULL ? cli_error("doctor", "%s: %s", path, strerror(errno))
                                      : cli_output_open("doctor", path, &out);

    if (rc == CLI_OK) {
        copy(from, out.file, burst);
        if (from != NULL && ferror(from)) {
            rc = cli_error("doctor", "%s: cannot be read further", path);
        }
        rc = cli_output_close("doctor", path, &out, rc);
    }
    if (from != NULL) {
        (void)fclose(from);
    }
    return rc;
}
