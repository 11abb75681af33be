/* How many bytes each link carried in each slice of time: the latest slices are kept, in a ring. */
#ifndef SOFTHCA_WIRE_SLICES_H
#define SOFTHCA_WIRE_SLICES_H

#include <stdint.h>

enum { WIRE_SLICES = 8192 };

struct wire_slices {
    uint64_t width; /* nanoseconds */
    uint64_t last;  /* the latest slice, counted from the clock's zero */
    uint32_t links;
    float cells[]; /* [slice % WIRE_SLICES][link] */
};

/* What they need for so many links; its owner fills width and links, all else is zero. */
uint64_t wire_slices_bytes(uint32_t links);

/* A link carries `rate` bytes per nanosecond from one time to another. */
void wire_slices_add(struct wire_slices *slices, uint32_t link, uint64_t from, uint64_t to,
                     double rate);

/* Of a slice that may be kept no more, or not yet: 0. */
double wire_slices_get(const struct wire_slices *slices, uint32_t link, uint64_t slice);

#endif
