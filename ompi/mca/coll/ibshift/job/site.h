/* Files that the administrator, or the user, has for all jobs. */
#ifndef IBSHIFT_JOB_SITE_H
#define IBSHIFT_JOB_SITE_H

#include <stdbool.h>
#include <stddef.h>

/* The path of that file in the administrator's folder; false: it is not there. */
bool ibshift_site_file(const char *name, char *path, size_t size);

/*
 * The file that a parameter names may be opened: opening a pipe waits for its writer, and that in
 * MPI_Init. Where there is nothing, the reader says so. False: why is set.
 */
bool ibshift_site_may_open(const char *path, char *why, size_t size);

/* The administrator's switch; why: with the first line of the file, which may hold anything. */
bool ibshift_site_switched_off(char *why, size_t size);

/* Tells of an order that there is no fabric for. */
void ibshift_site_check(void);

#endif
