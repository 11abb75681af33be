#include "story.h"

#include <stdio.h>

enum { LINES = 1 << 12 };

static char line[LINES][STORY_LINE];
static int lines;
static uint64_t hash;

void story_mix(uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
}

uint64_t story_hash(void)
{
    return hash;
}

void story_add(uint64_t now, int rank, const char *format, va_list args)
{
    char *text = line[lines++ % LINES];
    int n = snprintf(text, STORY_LINE, "%12.3f us  ", (double)now / 1e3);

    if (rank >= 0) {
        n += snprintf(text + n, STORY_LINE - (size_t)n, "rank %d: ", rank);
    }
    vsnprintf(text + n, STORY_LINE - (size_t)n, format, args);
    for (const char *p = text; *p != '\0'; p++) {
        story_mix((unsigned char)*p);
    }
}

void story_print(void)
{
    for (int i = lines > LINES ? lines - LINES : 0; i < lines; i++) {
        puts(line[i % LINES]);
    }
}
