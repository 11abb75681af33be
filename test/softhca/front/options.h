/* softhca-run's options: one table is parser, default and help. */
#ifndef SOFTHCA_OPTIONS_H
#define SOFTHCA_OPTIONS_H

#include "fault/fault.h"
#include "shm/shm.h"

struct options {
    struct shm_conf conf;
    const char *dir;
    const char *control, *tell;
    const char *wire, *fabric, *lfts, *place, *report, *timeline; /* NULL: not given */
    uint32_t gib;                                                 /* of the shared file */
    uint32_t scale, slice_us;
    uint32_t bond;  /* a port has two cables, and a queue pair one of them */
    uint32_t burst; /* packets of the wire; 0: not given */
    int quiet, keep;
    uint32_t faults;
    struct shm_fault fault[SHM_FAULTS / 4];
};

/* Reads options up to "--" or the command; *command is its index in argv. 0, -EINVAL after a
   message, or 1 when help or the version was asked for and printed. */
int options_parse(int argc, char **argv, struct options *o, int *command);

/* Reads the faults' texts, when the hosts are known. 0, or -EINVAL after a message. */
int options_faults(struct options *o);

#endif
