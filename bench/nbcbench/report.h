/* How results are written: a format is a struct of functions. */
#ifndef NBCBENCH_REPORT_H
#define NBCBENCH_REPORT_H

#include "nbcbench.h"

#include <stdio.h>

struct json;

struct format_functions {
    void (*open)(FILE *file, const struct options *o);
    /* Before the first size of a collective with so many ranks. */
    void (*begin)(FILE *file, const struct bench *b);
    void (*row)(FILE *file, const struct bench *b, const struct result *r);
    void (*close)(FILE *file);
};

extern const struct format_functions format_osu, format_imb, format_json;

/* What is known of the run, as lines behind "# " or, where json is given, as members of the open object. */
void metadata_write(FILE *file, struct json *json);
void metadata_collect(const struct options *o, int argc, char **argv);
/* Load of this host before the ranks began, per processor. */
double metadata_load(void);
/* Ranks on this host for each processor. */
double metadata_crowd(void);

#endif
