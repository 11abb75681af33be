/*
 * JSON as the commands print it: an object whose first member is the number of its layout, a
 * member a line at the top, a line for each object of a list there, everything deeper in one line.
 * The writer knows where commas go.
 */
#ifndef IBSHIFT_JSON_H
#define IBSHIFT_JSON_H

#include <stdbool.h>
#include <stdio.h>

#define JSON_LAYOUT 3 /* docs/seeing.md says when it grows */

struct json {
    FILE *out;
    unsigned depth;
    bool has_member; /* of what is open: a comma comes before the next */
};

/* The whole object. */
void json_begin(struct json *j, FILE *out);
void json_end(struct json *j);

/* name: NULL within an array. bracket: '{' or '['. */
void json_open(struct json *j, const char *name, char bracket);
void json_close(struct json *j, char bracket);
void json_text(struct json *j, const char *name, const char *text);
void json_bool(struct json *j, const char *name, bool value);
/* A number as the format gives it; "null" is one too. */
void json_value(struct json *j, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
