#include "story.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { LINES = 1 << 12, RANKS = 17, SAID = 256 };

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

bool story_is_new(int rank, const char *text)
{
    static uint64_t said[RANKS][SAID];
    uint64_t hash = 1, *of = said[rank];
    int i = 0;

    for (const char *at = text; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
    }
    while (i < SAID - 1 && of[i] != 0 && of[i] != hash) {
        i++;
    }
    if (of[i] == hash) {
        return strncmp(text, "ibshift: comm ", 14) == 0;
    }
    of[i] = hash;
    return true;
}

static const char *const names[COUNTS] = {
    [COUNT_SEEDS] = "seeds",
    [COUNT_MS] = "simulated milliseconds",
    [COUNT_CALLS] = "collectives that a rank has called",
    [COUNT_FAILURES] = "of them ended with an error",
    [COUNT_UNLIKE] = "calls of one rank that were not like the others'",
    [COUNT_DEATHS] = "ranks killed",
    [COUNT_STOPS] = "ranks stopped for a while",
    [COUNT_NO_MEMORY] = "allocations refused",
    [COUNT_NO_ROOM] = "times without room in the folder of shared memory",
    [COUNT_NO_COPY] = "copies that the kernel refused",
    [COUNT_NO_FILE] = "files that could not be opened or mapped",
    [COUNT_NO_VERB] = "calls that the adapter refused",
    [COUNT_JUMPS] = "clocks that jumped",
    [COUNT_GARBAGE] = "times that a hostile rank spoilt what others see",
    [COUNT_DATAGRAMS] = "datagrams of strangers",
    [COUNT_FILES] = "files of others in the folder of shared memory",
    [COUNT_LOST] = "packets lost",
    [COUNT_NOT_READY] = "packets that found no receive",
    [COUNT_SLOW] = "requests delayed",
    [COUNT_REFUSED] = "registrations refused",
    [COUNT_PORTS] = "ports and devices that went down, or had another event",
    [COUNT_TAPED] = "calls that ran a tape",
    [COUNT_RING] = "messages into a ring of an adapter's",
    [COUNT_EAGER] = "messages into a posted receive",
    [COUNT_GRANTED] = "messages with a grant",
    [COUNT_STANDING] = "messages with a grant that stood",
    [COUNT_PIECES] = "pieces of messages",
    [COUNT_PULLED] = "messages that were asked for by name",
    [COUNT_COPIED] = "messages that were copied for want of a registration",
    [COUNT_WORDS] = "limits told without a message",
    [COUNT_CELLS] = "messages in one cell of shared memory",
    [COUNT_NODE_RINGS] = "messages through a ring of shared memory",
    [COUNT_DIRECT] = "messages that the kernel copied",
    [COUNT_HELD] = "messages in shared memory that came early",
    [COUNT_CASTS] = "messages to multicast groups",
    [COUNT_REPAIRS] = "of them sent again to one member",
};
static uint64_t *counts;

void story_share(void)
{
    counts = mmap(NULL, COUNTS * sizeof(*counts), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void story_count(enum story_count what, uint64_t count)
{
    counts[what] += count;
}

const char *story_missing(void)
{
    int i = COUNT_TAPED;

    while (i < COUNTS && counts[i] > 0) {
        i++;
    }
    return i < COUNTS ? names[i] : NULL;
}

int story_write_counts(const char *path)
{
    FILE *file = fopen(path, "w");

    for (int i = 0; i < COUNTS && file != NULL; i++) {
        fprintf(file, "%s,%llu\n", names[i], (unsigned long long)counts[i]);
    }
    return file == NULL ? -1 : fclose(file);
}
