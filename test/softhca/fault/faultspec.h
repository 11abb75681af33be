/* Faults as people write them: KIND[:KEY=VALUE,...]. */
#ifndef SOFTHCA_FAULTSPEC_H
#define SOFTHCA_FAULTSPEC_H

#include <stddef.h>

#include "fault/fault.h"
#include "shm/shm.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* The row of that name in a table of at most NAMES_MAX rows whose first member is the name, or -1; then
   *hint, to be put behind a message, has the nearest one, if there is one. */
enum { NAMES_MAX = 64 };
int name_find(const void *rows, size_t count, size_t stride, const char *name, const char **hint);

/* 0, or -EINVAL and one line without newline in `why`. Hosts and ports must be those of `conf`. */
int fault_parse(const char *text, const struct shm_conf *conf, struct shm_fault *f, char *why,
                size_t size);

/* The grammar, for --help. */
void fault_print_help(void);

#endif
