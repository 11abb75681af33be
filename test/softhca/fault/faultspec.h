/* Faults as people write them: KIND[:KEY=VALUE,...]. */
#ifndef SOFTHCA_FAULTSPEC_H
#define SOFTHCA_FAULTSPEC_H

#include <stddef.h>

#include "fault/fault.h"
#include "shm/shm.h"

/* 0, or -EINVAL and one line without newline in `why`. Hosts and ports must be those of `conf`. */
int fault_parse(const char *text, const struct shm_conf *conf, struct shm_fault *f, char *why,
                size_t size);

/* The grammar, for --help. */
void fault_print_help(void);

#endif
