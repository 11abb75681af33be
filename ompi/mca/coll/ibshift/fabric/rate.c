#include "fabric/rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct generation {
    const char *name;
    uint32_t lane; /* Mb/s */
} generations[] = {
    {"FDR10", 10312}, {"SDR", 2500},  {"DDR", 5000},   {"QDR", 10000},  {"FDR", 14062},
    {"EDR", 25781},   {"HDR", 53125}, {"NDR", 106250}, {"XDR", 212500},
};

uint32_t ibshift_rate_parse(const char *text)
{
    char *end;
    unsigned long width = strtoul(text, &end, 10);

    if (end == text || *end != 'x' || width == 0 || width > 12) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++) {
        if (strncmp(end + 1, generations[i].name, strlen(generations[i].name)) == 0) {
            return (uint32_t)width * generations[i].lane;
        }
    }
    return 0;
}

void ibshift_rate_name(uint32_t rate, char *text, size_t size)
{
    static const unsigned widths[] = {4, 2, 1, 8, 12};

    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
        for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++) {
            if (rate == widths[w] * generations[i].lane) {
                snprintf(text, size, "%ux%s", widths[w], generations[i].name);
                return;
            }
        }
    }
    snprintf(text, size, "%.1f Gb/s", rate / 1000.0);
}
