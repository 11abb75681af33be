/*
 * The one way in which programs write a file that they are told to write.
 *
 * "-" is standard output, and what the program says besides goes to standard error then. Links are followed. A
 * file is written beside the one that is there, whose owner and mode it gets, and then put in its place: nobody meets
 * half of it. Until then it has no name where the file system allows that, so that nothing is left of it when the
 * program is killed. What is no file, such as a device or a pipe, is written into.
 */
#ifndef IBSHIFT_OUTPUT_H
#define IBSHIFT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file;   /* write here, and leave closing it to output_close() */
    char *target; /* whose place the file takes at the end; NULL: it is written in place */
    char *beside; /* its name until then; NULL: none yet */
};

/* All: 0, or a negative errno with nothing changed. */
int output_open(struct output *out, const char *path);
/* Rows as they are measured: a run that ends early leaves what it has. */
int output_open_rows(struct output *out, const char *path);
/* Not is_whole: what was there stays. */
int output_close(struct output *out, bool is_whole);

/* Whether output_open() will do, before the work. */
int output_check(const char *path);
/* Whether both name one file, through links too, which need not be there yet. */
bool output_is_same(const char *path, const char *other);
/* Whether what is read would be lost: a file of this name. */
bool output_replaces(const char *path, const char *read);

#endif
