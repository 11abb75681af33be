/* The burst in a parameter file of Open MPI: other nodes' doctors may have written there before. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "doctor/doctor.h"

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

/* All other lines, and last the most of what was there and what is new; 0 or an errno. */
static int copy(FILE *from, FILE *to, uint32_t burst)
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
    return (from != NULL && ferror(from)) || fflush(to) != 0 || ferror(to) ? EIO : 0;
}

int doctor_save(const char *path, uint32_t burst)
{
    char beside[4096]; /* Linux opens no longer path */
    struct stat before;
    FILE *from = fopen(path, "r"), *to = NULL;
    int rc = from == NULL && errno != ENOENT ? errno : 0;

    if (rc == 0 && snprintf(beside, sizeof(beside), "%s.new", path) >= (int)sizeof(beside)) {
        rc = ENAMETOOLONG;
    }
    if (rc == 0) {
        to = fopen(beside, "w");
        rc = to == NULL ? errno : copy(from, to, burst);
    }
    if (rc == 0 && from != NULL && fstat(fileno(from), &before) == 0) {
        (void)fchmod(fileno(to), before.st_mode & 0777);
    }
    if (from != NULL) {
        (void)fclose(from);
    }
    if (to != NULL && fclose(to) != 0 && rc == 0) {
        rc = errno;
    }
    if (rc == 0 && rename(beside, path) != 0) {
        rc = errno;
    }
    if (rc != 0 && to != NULL) {
        (void)unlink(beside);
    }
    return rc == 0 ? CLI_OK : cli_error("doctor", "--save '%s': %s", path, strerror(rc));
}
