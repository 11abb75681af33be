/* Lines of a text file: bounded in length, NUL bytes refused, errors with file:line. */
#ifndef IBSHIFT_FABRIC_GRAPH_LINES_H
#define IBSHIFT_FABRIC_GRAPH_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fabric/graph/error.h"

#define IBSHIFT_LINE_MAX 4096

struct ibshift_lines {
    FILE *file;
    const char *name; /* the caller's */
    unsigned number;  /* of the line in text, from 1 */
    char text[IBSHIFT_LINE_MAX];
    size_t at, filled;
    char buffer[131072];
};

int ibshift_lines_open(struct ibshift_lines *lines, const char *path, struct ibshift_error *err);
/* Takes the file over. */
void ibshift_lines_from(struct ibshift_lines *lines, FILE *file, const char *name);
void ibshift_lines_close(struct ibshift_lines *lines);
/* 1: text holds the next line without its end (and a carriage return before it); 0: no more;
 * negative: err. */
int ibshift_lines_next(struct ibshift_lines *lines, struct ibshift_error *err);
/* For formats that are not lines: the next character, EOF at the end or where it cannot be read on. */
int ibshift_lines_char(struct ibshift_lines *lines);
/* The first bytes of the file, not taken from it. */
const char *ibshift_lines_head(struct ibshift_lines *lines, size_t *size);
/* "file:line: reason" */
int ibshift_lines_fail(const struct ibshift_lines *lines, struct ibshift_error *err, int code,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* After blanks: a number of at most 16 digits. NULL if there is none, else what follows. */
const char *ibshift_scan_decimal(const char *at, uint64_t *value);
const char *ibshift_scan_hex(const char *at, uint64_t *value); /* with or without 0x */
const char *ibshift_scan_blanks(const char *at);
/* "..." after blanks: copies at most size - 1 characters. NULL if there is none or it is longer. */
const char *ibshift_scan_quoted(const char *at, char *text, size_t size);

#endif
