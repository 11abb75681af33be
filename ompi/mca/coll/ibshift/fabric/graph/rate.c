#include "fabric/graph/rate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What a lane carries, in Mb/s: bits on the wire, and data. Up to QDR 8 of 10 bits are data, above
 * it 64 of 66; HDR and later also pay for their forward error correction (514 of 544 symbols, 256
 * of 257 bits).
 */
static const struct generation {
    const char *name;
    double signalling;
    double data;
} generations[] = {
    {"FDR10", 10312.5, 10000}, {"SDR", 2500, 2000},       {"DDR", 5000, 4000},
    {"QDR", 10000, 8000},      {"FDR", 14062.5, 13636.4}, {"EDR", 25781.25, 25000},
    {"HDR", 53125, 50000},     {"NDR", 106250, 100000},   {"XDR", 212500, 200000},
};

#define GENERATIONS (sizeof(generations) / sizeof(generations[0]))
#define WIDEST      12

static struct ibshift_rate rate_of(unsigned lanes, size_t generation)
{
    return (struct ibshift_rate){.mbps = (uint32_t)lround(lanes * generations[generation].data) &
                                         IBSHIFT_RATE_MOST,
                                 .lanes = lanes & 15,
                                 .generation = (generation + 1) & 15};
}

struct ibshift_rate ibshift_rate_parse(const char *text)
{
    char *end;
    unsigned long width = strtoul(text, &end, 10);

    if (end == text || *end != 'x' || width == 0 || width > WIDEST) {
        return IBSHIFT_NO_RATE;
    }
    for (size_t i = 0; i < GENERATIONS; i++) {
        if (strncmp(end + 1, generations[i].name, strlen(generations[i].name)) == 0) {
            return rate_of((unsigned)width, i);
        }
    }
    return IBSHIFT_NO_RATE;
}

struct ibshift_rate ibshift_rate_usual(void)
{
    return ibshift_rate_parse("4xQDR");
}

/* Tools round: 14.0625 is written 14, 14.06 or 14.1. They may also take the data for the bits: 25
 * of EDR, 50 of HDR. */
struct ibshift_rate ibshift_rate_of_lanes(unsigned lanes, double signalling)
{
    struct ibshift_rate rate = IBSHIFT_NO_RATE;

    if (lanes == 0 || lanes > WIDEST || !(signalling > 0) || signalling >= 1e6) {
        return rate;
    }
    for (size_t i = 0; i < GENERATIONS; i++) {
        if (fabs(signalling - generations[i].signalling) < generations[i].signalling / 100) {
            return rate_of(lanes, i);
        }
    }
    for (size_t i = 0; i < GENERATIONS; i++) {
        if (signalling > 20000 && fabs(signalling - generations[i].data) < 1) {
            return rate_of(lanes, i);
        }
    }
    rate.mbps = (uint32_t)lround(lanes * signalling * 64 / 66) & IBSHIFT_RATE_MOST;
    return rate;
}

struct ibshift_rate ibshift_rate_of_texts(const char *width, const char *speed)
{
    double lanes = strtod(width, NULL), lane = strtod(speed, NULL);

    return lanes >= 1 && lanes <= WIDEST ? ibshift_rate_of_lanes((unsigned)lanes, lane * 1000)
                                         : IBSHIFT_NO_RATE;
}

void ibshift_rate_name(struct ibshift_rate rate, char *text, size_t size)
{
    if (rate.generation == 0 || rate.generation > GENERATIONS) {
        snprintf(text, size, "%.1f Gb/s", rate.mbps / 1000.0);
    } else {
        snprintf(text, size, "%ux%s", rate.lanes, generations[rate.generation - 1].name);
    }
}

uint32_t ibshift_rate_of_hosts(const struct ibshift_fabric *f, const uint32_t *hosts,
                               uint32_t count)
{
    uint32_t fastest = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t rate = f->ports[f->hosts[hosts != NULL ? hosts[i] : i]].rate.mbps;

        fastest = rate > fastest ? rate : fastest;
    }
    return fastest;
}

double ibshift_link_cost(const struct ibshift_fabric *f, uint32_t link, uint32_t fastest)
{
    uint32_t rate = f->ports[link].rate.mbps;

    return rate > 0 && fastest > 0 ? (double)fastest / rate : 1;
}
