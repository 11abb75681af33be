/* What the links carried. */
#include "front/wire_make.h"

#include <stdio.h>
#include <string.h>

#include "output.h"
#include "wire/wire.h"

static void name_link(const struct place *place, uint32_t link, char *text, size_t size)
{
    const struct shm_port *p;
    char end[64];

    if (place->fabric) {
        ibshift_link_name(place->fabric, link, text, size);
        return;
    }
    p = &shm.ports[link / 2];
    snprintf(end, sizeof(end), "host %u softhca%u port %u", p->host, p->hca, p->num);
    snprintf(text, size, link % 2 ? "switch -> %s" : "%s -> switch", end);
}

static void print_report(FILE *f, const struct options *o, const struct profile *profile,
                         const struct place *place)
{
    char name[512], burst[64] = "";
    uint32_t links = place_links(place);

    if (o->burst) {
        snprintf(burst, sizeof(burst), "; bursts of %u packets of %d bytes", o->burst, WIRE_PACKET);
    }
    fprintf(f,
            "# modelled wire %s: cable %g GB/s, HCA %g GB/s, gap %g ns, HCA latency %g ns, hop %g "
            "ns; scale %u%s\n"
            "# links that carried nothing are left out\n",
            profile->name, profile->link_rate, profile->hca_rate, profile->gap_ns, profile->hca_ns,
            profile->hop_ns, o->scale, burst);
    if (o->burst) {
        fprintf(f, "# at most %llu bytes of one queue pair in a row while another one's waited\n",
                (unsigned long long)shm.wire->clock.longest);
    }
    fprintf(f, "# %14s %10s %8s  link\n", "bytes", "most flows", "GB/s");
    for (uint32_t l = 0; l < links; l++) {
        const struct wire_link *link = &shm.wire->links[l];

        if (link->most) {
            name_link(place, l, name, sizeof(name));
            fprintf(f, "%16llu %10u %8.2f  %s\n", (unsigned long long)link->bytes, link->most,
                    link->rate * o->scale, name);
        }
    }
    for (unsigned sl = 0; sl < sizeof(shm.wire->by_sl) / sizeof(shm.wire->by_sl[0]); sl++) {
        if (shm.wire->by_sl[sl]) {
            fprintf(f, "# service level %u: %llu bytes\n", sl,
                    (unsigned long long)shm.wire->by_sl[sl]);
        }
    }
}

/* The bytes of each link over time, as a table: a line for each link, a column for each slice. */
static bool is_used(const struct wire_slices *s, uint32_t link, uint64_t first)
{
    for (uint64_t slice = first; slice <= s->last; slice++) {
        if (wire_slices_get(s, link, slice) > 0) {
            return true;
        }
    }
    return false;
}

static void print_timeline(FILE *f, const struct options *o, const struct profile *profile,
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
        name_link(place, l, name, sizeof(name));
        fprintf(f, "%s\t%.4f", name, shm.wire->links[l].rate * o->scale);
        for (uint64_t slice = first; slice <= s->last; slice++) {
            fprintf(f, "\t%.0f", wire_slices_get(s, l, slice));
        }
        fputc('\n', f);
    }
}

static int say(const char *option, const char *path, int err)
{
    if (err) {
        fprintf(stderr, "softhca-run: %s: %s: %s\n", option, path, strerror(-err));
    }
    return err;
}

/* Standard output is the program's until it has ended. */
static int check(const char *option, const char *path)
{
    return path && strcmp(path, "-") != 0 ? say(option, path, output_check(path)) : 0;
}

int wire_report_check(const struct options *o)
{
    int err = check("--wire-report", o->report);

    return err ? err : check("--wire-timeline", o->timeline);
}

static int write_to(const char *path, const char *option,
                    void (*print)(FILE *f, const struct options *o, const struct profile *profile,
                                  const struct place *place),
                    const struct options *o, const struct profile *profile,
                    const struct place *place)
{
    struct output out;
    int err = output_open(&out, path);

    if (!err) {
        print(out.file, o, profile, place);
        err = output_close(&out, true);
    }
    return say(option, path, err);
}

int wire_report(const struct options *o, const struct profile *profile, const struct place *place)
{
    int report =
        o->report ? write_to(o->report, "--wire-report", print_report, o, profile, place) : 0;
    int timeline = o->timeline
                       ? write_to(o->timeline, "--wire-timeline", print_timeline, o, profile, place)
                       : 0;

    return report ? report : timeline;
}
