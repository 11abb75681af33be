/* Fills the wire's part of the shared file, and says afterwards what the links carried. */
#ifndef SOFTHCA_WIRE_MAKE_H
#define SOFTHCA_WIRE_MAKE_H

#include "front/place.h"

/* Modelled wires: what softhca-run --wire takes. */
struct profile {
    const char *name;
    double link_rate; /* payload bytes per nanosecond (GB/s) of a 4x cable, headers taken off */
    double hca_rate;  /* the same at the HCA: the inverse of LogGP's gap per byte */
    double gap_ns;    /* from one message to the next at the HCA */
    double hca_ns;    /* latency of one HCA: two are passed */
    double hop_ns;    /* latency of a switch with its cable */
    const char *help;
};

/* After the ports have been made. 0, or a negative errno after a message. */
int wire_make(const struct profile *profile, const struct options *o, const struct place *place);

/* Finds the profile and checks what goes with it; *profile NULL: no wire. */
int wire_choose(const struct options *o, const struct profile **profile);

/* Before the run: can that be written? */
int wire_report_check(const struct options *o);
/* Writes what the options ask for, at the end of the run: what each link carried, and when. 0, or a
   negative errno after a message. */
int wire_report(const struct options *o, const struct profile *profile, const struct place *place);

#endif
