#ifndef IBSHIFT_REPLAY_STORY_H
#define IBSHIFT_REPLAY_STORY_H

/* What happened, in lines, and their hash: two runs of a seed have the same. */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum { STORY_LINE = 240 };

__attribute__((format(printf, 3, 0))) void story_add(uint64_t now, int rank, const char *format,
                                                     va_list args);
/* Whether the rank has not said it yet; choices are made again for another communicator. */
bool story_is_new(int rank, const char *text);
void story_mix(uint64_t value);
uint64_t story_hash(void);
void story_print(void);

/* What the account counts, over all runs: in memory that they share. */
enum story_count {
    COUNT_SEEDS,
    COUNT_MS, /* of simulated time */
    COUNT_CALLS,
    COUNT_FAILURES,
    COUNT_UNLIKE,
    COUNT_DEATHS,
    COUNT_STOPS,
    COUNT_NO_MEMORY,
    COUNT_NO_ROOM,
    COUNT_NO_COPY,
    COUNT_NO_FILE,
    COUNT_NO_VERB,
    COUNT_JUMPS,
    COUNT_GARBAGE,
    COUNT_DATAGRAMS,
    COUNT_FILES,
    COUNT_LOST,
    COUNT_NOT_READY,
    COUNT_SLOW,
    COUNT_REFUSED,
    COUNT_PORTS,
    COUNT_PULLED, /* from here on, as the product counts */
    COUNT_COPIED,
    COUNT_TAPED, /* and from here on, some in any few seeds */
    COUNT_RING,
    COUNT_EAGER,
    COUNT_GRANTED,
    COUNT_STANDING,
    COUNT_PIECES,
    COUNT_WORDS,
    COUNT_CELLS,
    COUNT_NODE_RINGS,
    COUNT_DIRECT,
    COUNT_HELD,
    COUNT_CASTS,
    COUNT_REPAIRS,
    COUNTS
};
void story_count(enum story_count what, uint64_t count);
void story_share(void);
const char *story_missing(void); /* of these what was never counted; NULL: nothing */
int story_write_counts(const char *path);

#endif
