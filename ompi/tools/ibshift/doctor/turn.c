/* What the order of arrivals says about the turns of an adapter. */
#include "doctor/turn.h"

#include <stdlib.h>

static int by_length(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

    return (one > other) - (one < other);
}

/* Where the long message begins and ends: behind the first arrival of its queue pair, at the
   second. False: it has not arrived. */
static bool find_long(const uint8_t *from, uint32_t count, uint32_t *begin, uint32_t *end)
{
    uint32_t seen = 0;

    for (uint32_t i = 0; i < count && seen < 2; i++) {
        if (from[i] == TURN_LONG) {
            *(seen == 0 ? begin : end) = seen == 0 ? i + 1 : i;
            seen++;
        }
    }
    return seen == 2;
}

/*
 * While the long message leaves, each of the two other queue pairs sends short ones. A turn of theirs is
 * a run of arrivals: the median, since who looks late sees several turns of one as one run. For each
 * of their turns the long message had one.
 */
uint32_t turn_bytes(const uint8_t *from, uint32_t count, uint32_t length)
{
    uint32_t runs[TURN_ARRIVALS], begin, end, run_count = 0;

    if (count > TURN_ARRIVALS || !find_long(from, count, &begin, &end)) {
        return 0;
    }
    for (uint32_t i = begin, run = 0; i < end; i++) {
        run++;
        if (i + 1 == end || from[i + 1] != from[i]) {
            runs[run_count++] = run;
            run = 0;
        }
    }
    if (run_count == 0) {
        return length;
    }
    qsort(runs, run_count, sizeof(runs[0]), by_length);
    double turns = (double)(end - begin) / (TURN_SHORTS * (double)runs[run_count / 2]);
    double bytes = length / turns;
    return bytes >= length ? length : (uint32_t)(bytes / TURN_UNIT + 0.5) * TURN_UNIT;
}

bool turn_is_heard(const uint32_t *bytes, uint32_t count, uint32_t length)
{
    for (uint32_t i = 0; i < count; i++) {
        if (bytes[i] > length || bytes[i] % TURN_UNIT != 0) {
            return false;
        }
    }
    return true;
}

uint32_t turn_median(uint32_t *bytes, uint32_t count)
{
    qsort(bytes, count, sizeof(bytes[0]), by_length);
    return count > 0 ? bytes[count / 2] : 0;
}
