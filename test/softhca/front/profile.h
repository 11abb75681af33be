/* Modelled wires: what softhca-run --wire takes. */
#ifndef SOFTHCA_PROFILE_H
#define SOFTHCA_PROFILE_H

struct profile {
    const char *name;
    double link_rate; /* payload bytes per nanosecond (GB/s) of a 4x cable, headers taken off */
    double hca_rate;  /* the same at the HCA: the inverse of LogGP's gap per byte */
    double gap_ns;    /* from one message to the next at the HCA */
    double hca_ns;    /* latency of one HCA: two are passed */
    double hop_ns;    /* latency of a switch with its cable */
    const char *help;
};

/* NULL: none has the name. */
const struct profile *profile_find(const char *name);
/* The one whose name is nearest. */
const struct profile *profile_nearest(const char *name);
/* All names, with ", " between them. */
const char *profile_names(void);

#endif
