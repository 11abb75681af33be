/* Lines of a text file: bounded in length, NUL bytes refused, errors with file:line; and what takes them apart. */
#ifndef IBSHIFT_FABRIC_GRAPH_LINES_H
#define IBSHIFT_FABRIC_GRAPH_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fabric/graph/error.h"

#define IBSHIFT_LINE_MAX 4096

struct ibshift_lines {
    FILE *file;
    const char *name;          /* the caller's */
    struct ibshift_error *err; /* takes what is wrong in the file */
    unsigned number;           /* of the line in text, from 1 */
    char text[IBSHIFT_LINE_MAX];
    size_t at, filled;
    char buffer[131072];
};

/* To be read, and no folder. NULL: err. */
FILE *ibshift_lines_file(const char *path, struct ibshift_error *err);
/* The same, as lines. */
struct ibshift_lines *ibshift_lines_open(const char *path, struct ibshift_error *err);
/* Takes the file over; it may be NULL, as fmemopen() returns it. */
struct ibshift_lines *ibshift_lines_from(FILE *file, const char *name, struct ibshift_error *err);
void ibshift_lines_close(struct ibshift_lines *lines);
/* 1: text holds the next line without its end (and a carriage return before it); 0: no more;
 * negative: err. */
int ibshift_lines_next(struct ibshift_lines *lines);
/* Calls take for each line that is left, until one does not return 0. */
int ibshift_lines_each(struct ibshift_lines *lines, int (*take)(void *context), void *context);
/* The first bytes of the file, not taken from it. */
const char *ibshift_lines_head(struct ibshift_lines *lines, size_t *size);
/* "file:line: reason"; returns code. */
int ibshift_lines_fail(const struct ibshift_lines *lines, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same of a reason that is in err already; code 0: none is. */
int ibshift_lines_where(const struct ibshift_lines *lines, int code);

/* After blanks: a number of at most 16 digits. NULL if there is none or at is NULL, else what follows. */
const char *ibshift_scan_decimal(const char *at, uint64_t *value);
const char *ibshift_scan_hex(const char *at, uint64_t *value); /* with or without 0x */
const char *ibshift_scan_blanks(const char *at);
/* What follows the word; NULL: the text does not begin with it. */
static inline const char *ibshift_scan_word(const char *at, const char *word)
{
    size_t length = strlen(word);

    return strncmp(at, word, length) == 0 ? at + length : NULL;
}
/*
 * Takes text apart by a pattern. A blank in it stands for blanks or none, %u and %x for numbers as above
 * (uint64_t *), %q for what is in quotes (char *, size_t of its room), %* for all before the text that
 * follows in the pattern up to its next %. Other characters stand for themselves. Returns what follows;
 * NULL: the text is not like that, or at is NULL.
 */
const char *ibshift_scan(const char *at, const char *pattern, ...);

#endif
