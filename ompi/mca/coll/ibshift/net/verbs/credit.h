#ifndef IBSHIFT_NET_VERBS_CREDIT_H
#define IBSHIFT_NET_VERBS_CREDIT_H

/*
 * Credits without any device. Limits and uses are counted up for ever, modulo 2^32; a message
 * carries the lower 16 bits of a limit, so news may overtake each other or be lost.
 */

#include <stdbool.h>
#include <stdint.h>

enum { IBSHIFT_CREDIT_MOST = 64 }; /* slots that a peer may have at a time */

/* Moves a limit forward to the news; old news changes nothing. */
static inline void ibshift_limit_advance(uint32_t *limit, uint16_t news)
{
    uint16_t ahead = (uint16_t)(news - (uint16_t)*limit);
    if (ahead < 0x8000) {
        *limit += ahead;
    }
}

/* The same for a word, which may be very old: a limit never moves by more than its window. */
static inline void ibshift_limit_advance32(uint32_t *limit, uint32_t news, uint32_t window)
{
    if (news - *limit <= window) {
        *limit = news;
    }
}

/*
 * Who has no slot asks for one, less and less often: the peer may be stopped, or compute for long. The
 * pause begins again when the peer has given some.
 */
static const uint64_t ibshift_ask_pause = 1000 * 1000; /* ns; doubled with each try, so often: */
enum { IBSHIFT_ASK_DOUBLED = 7 };

struct ibshift_asks {
    uint64_t last; /* when */
    uint32_t with; /* the limit then */
    uint32_t in_vain;
};

static inline bool ibshift_asks_now(struct ibshift_asks *asks, uint32_t limit, uint64_t now)
{
    if (asks->with != limit) {
        asks->with = limit;
        asks->in_vain = 0;
    }
    if (now - asks->last <= ibshift_ask_pause << asks->in_vain) {
        return false;
    }
    asks->last = now;
    asks->in_vain += asks->in_vain < IBSHIFT_ASK_DOUBLED;
    return true;
}

/*
 * What a new peer gets of a stock: a slice of what is left above the reserve, never more than
 * most. The first peers get most, later ones less, the last ones nothing; the sum never passes
 * the stock.
 */
static inline uint32_t ibshift_stock_share(uint32_t left, uint32_t reserve, uint32_t most)
{
    if (left <= reserve) {
        return 0;
    }
    uint32_t slice = (left - reserve + 31) / 32;
    return slice < most ? slice : most;
}

/* Whether the sender should hear of its new limit now: half of the window is spent, or all that
   it has heard of has come in. */
static inline int ibshift_limit_is_news(uint32_t limit, uint32_t told, uint32_t arrived,
                                        uint32_t window)
{
    uint32_t fresh = limit - told;
    return fresh > 0 && (fresh * 2 >= window || arrived == told);
}

/*
 * A ring's limit is told on demand, so that a stream one way costs one word for three quarters of
 * the ring and traffic both ways none. The sender asks once for each limit that it has heard of,
 * in the first record that leaves no more than a quarter.
 */
static inline bool ibshift_ring_asks(uint32_t limit, uint32_t used, uint32_t asked, uint32_t size)
{
    return limit - used <= size / 4 && asked != limit;
}

/* The answer waits until it is worth a word: places of held records come back one by one, and the
   longest record takes one line more than a quarter. */
static inline bool ibshift_ring_answers(uint32_t limit, uint32_t told, uint32_t size)
{
    return limit - told > size / 4;
}

#endif
