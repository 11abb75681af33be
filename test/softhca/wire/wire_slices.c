#include "wire/wire_net.h"

#include <string.h>

uint64_t wire_slices_bytes(uint32_t links)
{
    return sizeof(struct wire_slices) + (uint64_t)links * WIRE_SLICES * sizeof(float);
}

static float *cell(struct wire_slices *s, uint32_t link, uint64_t slice)
{
    return s->cells + (slice % WIRE_SLICES) * s->links + link;
}

/* The slices up to this one begin empty; those that they replace are forgotten. */
static void go_on(struct wire_slices *s, uint64_t slice)
{
    uint64_t first = s->last + 1;

    if (slice >= first + WIRE_SLICES) {
        first = slice - WIRE_SLICES + 1;
    }
    for (; first <= slice; first++) {
        memset(cell(s, 0, first), 0, s->links * sizeof(float));
        s->last = first;
    }
}

void wire_slices_add(struct wire_slices *slices, uint32_t link, uint64_t from, uint64_t to,
                     double rate)
{
    uint64_t slice;

    if (to <= from || rate <= 0) {
        return;
    }
    go_on(slices, (to - 1) / slices->width);
    slice = from / slices->width;
    if (slice + WIRE_SLICES <= slices->last) {
        slice = slices->last - WIRE_SLICES + 1;
    }
    for (; slice * slices->width < to; slice++) {
        uint64_t begin = slice * slices->width, end = begin + slices->width;

        begin = from > begin ? from : begin;
        end = to < end ? to : end;
        *cell(slices, link, slice) += (float)(rate * (double)(end - begin));
    }
}

double wire_slices_get(const struct wire_slices *slices, uint32_t link, uint64_t slice)
{
    bool is_kept = slice <= slices->last && slice + WIRE_SLICES > slices->last;

    return is_kept ? (double)slices->cells[slice % WIRE_SLICES * slices->links + link] : 0;
}
