#include "front/profile.h"

#include <stdio.h>
#include <string.h>

/*
 * Round numbers in the range of data sheets, measured on nothing. A rate is that of the encoding
 * less 1 % for the headers of 4 KiB packets; an HCA moves a little less than its cable could.
 */
static const struct profile profiles[] = {
    /*         GB/s   GB/s  ns   ns   ns */
    {"sdr", 0.99, 0.97, 50, 600, 200, "4x SDR, 10 Gb/s"},
    {"qdr", 3.96, 3.4, 25, 500, 140, "4x QDR, 40 Gb/s"},
    {"fdr", 6.7, 6.2, 10, 350, 170, "4x FDR, 56 Gb/s"},
    {"edr", 12.4, 12.1, 7, 300, 90, "4x EDR, 100 Gb/s"},
    {"hdr", 24.8, 24.2, 5, 270, 130, "4x HDR, 200 Gb/s"},
    {"ndr-like", 49.6, 48.4, 3, 250, 180, "4x NDR, 400 Gb/s"},
};

enum { PROFILES = sizeof(profiles) / sizeof(profiles[0]), NAME_MAX_LENGTH = 32 };

const struct profile *profile_find(const char *name)
{
    for (int i = 0; i < PROFILES; i++) {
        if (strcmp(profiles[i].name, name) == 0) {
            return &profiles[i];
        }
    }
    return NULL;
}

/* Letters to insert, drop or change (Levenshtein). */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[NAME_MAX_LENGTH + 1];
    unsigned width = (unsigned)strnlen(b, NAME_MAX_LENGTH);
    for (unsigned j = 0; j <= width; j++) {
        row[j] = j;
    }
    for (unsigned i = 0; i < NAME_MAX_LENGTH && a[i]; i++) {
        unsigned corner = i;
        row[0] = i + 1;
        for (unsigned j = 1; j <= width; j++) {
            unsigned change = corner + (a[i] != b[j - 1]);
            corner = row[j];
            unsigned least = row[j] < row[j - 1] ? row[j] : row[j - 1];
            row[j] = change < least + 1 ? change : least + 1;
        }
    }
    return row[width];
}

const struct profile *profile_nearest(const char *name)
{
    const struct profile *best = &profiles[0];
    for (int i = 1; i < PROFILES; i++) {
        if (distance(name, profiles[i].name) < distance(name, best->name)) {
            best = &profiles[i];
        }
    }
    return best;
}

const char *profile_names(void)
{
    static char text[PROFILES * NAME_MAX_LENGTH];
    size_t at = 0;
    for (int i = 0; i < PROFILES; i++) {
        at +=
            (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? ", " : "", profiles[i].name);
    }
    return text;
}
