/* The bytes of each link over time, as a table: a line a link, a column a slice. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/wire.h"
#include "front/wire_make.h"
#include "wire/wire_slices.h"

static bool is_used(const struct wire_slices *s, uint32_t link, uint64_t first)
{
    for (uint64_t slice = first; slice <= s->last; slice++) {
        if (wire_slices_get(s, link, slice) > 0) {
            return true;
        }
    }
    return false;
}

static void print(FILE *f, const struct options *o, const struct profile *profile,
                  const struct place *place)
{
    const struct wire_slices *s = (const void *)(shm.base + shm.wire->slices);
    uint64_t first = s->last < WIRE_SLICES ? 0 : s->last - WIRE_SLICES + 1;
    char name[512];
    fprintf(f,
            "# modelled wire %s, scale %u: bytes of links in slices of %u us of modelled time\n"
            "# links that carried nothing are left out\n# link\tGB/s\tbytes of each slice...\n",
            profile->name, o->scale, o->slice_us);
    for (uint32_t l = 0; l < s->links; l++) {
        if (!is_used(s, l, first)) {
            continue;
        }
        wire_link_name(place, l, name, sizeof(name));
        fprintf(f, "%s\t%.4f", name, shm.wire->links[l].rate * o->scale);
        for (uint64_t slice = first; slice <= s->last; slice++) {
            fprintf(f, "\t%.0f", wire_slices_get(s, l, slice));
        }
        fputc('\n', f);
    }
}

int wire_timeline(const char *path, const struct options *o, const struct profile *profile,
                  const struct place *place)
{
    bool is_standard = strcmp(path, "-") == 0;
    FILE *f = is_standard ? stdout : fopen(path, "w");
    if (f) {
        print(f, o, profile, place);
    }
    if (!f || (is_standard ? fflush(f) : fclose(f)) != 0) {
        int err = errno;
        fprintf(stderr, "softhca-run: --wire-timeline: %s: %s\n", path, strerror(err));
        return -err;
    }
    return 0;
}
