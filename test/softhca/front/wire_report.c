#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/wire.h"
#include "front/wire_make.h"

uint32_t wire_links(const struct place *place)
{
    return place->fabric ? place->fabric->port_count : 2 * shm.head->port_count;
}

void wire_link_name(const struct place *place, uint32_t link, char *text, size_t size)
{
    if (place->fabric) {
        ibshift_link_name(place->fabric, link, text, size);
        return;
    }
    const struct shm_port *p = &shm.ports[link / 2];
    char end[64];
    snprintf(end, sizeof(end), "host %u softhca%u port %u", p->host, p->hca, p->num);
    snprintf(text, size, link % 2 ? "switch -> %s" : "%s -> switch", end);
}

static void print(FILE *f, const struct options *o, const struct profile *profile,
                  const struct place *place)
{
    char name[512], burst[64] = "";
    uint32_t links = wire_links(place);
    if (o->burst) {
        snprintf(burst, sizeof(burst), "; bursts of %u packets of %d bytes", o->burst, WIRE_PACKET);
    }
    fprintf(f,
            "# modelled wire %s: cable %g GB/s, HCA %g GB/s, gap %g ns, HCA latency %g ns, hop %g "
            "ns; scale %u%s\n"
            "# links that carried nothing are left out\n",
            profile->name, profile->link_rate, profile->hca_rate, profile->gap_ns, profile->hca_ns,
            profile->hop_ns, o->scale, burst);
    fprintf(f, "# %14s %10s %8s  link\n", "bytes", "most flows", "GB/s");
    for (uint32_t l = 0; l < links; l++) {
        const struct wire_link *link = &shm.wire->links[l];
        if (link->most) {
            wire_link_name(place, l, name, sizeof(name));
            fprintf(f, "%16llu %10u %8.2f  %s\n", (unsigned long long)link->bytes, link->most,
                    link->rate * o->scale, name);
        }
    }
}

int wire_report(const char *path, const struct options *o, const struct profile *profile,
                const struct place *place)
{
    bool is_standard = strcmp(path, "-") == 0;
    FILE *f = is_standard ? stdout : fopen(path, "w");
    if (f) {
        print(f, o, profile, place);
    }
    if (!f || (is_standard ? fflush(f) : fclose(f)) != 0) {
        int err = errno;
        fprintf(stderr, "softhca-run: --wire-report: %s: %s\n", path, strerror(err));
        return -err;
    }
    return 0;
}
