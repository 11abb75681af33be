/*
 * How many bytes of one message an adapter sends before it turns to another queue pair's message,
 * seen in the order in which messages of three queue pairs arrive. No clock is read: one queue pair
 * sends a long message, the two others short ones, one after another.
 */
#ifndef IBSHIFT_DOCTOR_TURN_H
#define IBSHIFT_DOCTOR_TURN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TURN_LONG = 0,        /* the queue pair of the long message, which comes behind another one */
    TURN_SHORTS = 2,      /* queue pairs that send short ones: 1 and 2 */
    TURN_ARRIVALS = 2048, /* at most */
    TURN_UNIT = 1024,     /* what is said is a multiple of it */
};

/* Bytes in a turn, at most the long message's `length`, which stands for "all of it"; 0: the
   arrivals do not tell. from: the queue pair of each arrival, in their order. */
uint32_t turn_bytes(const uint8_t *from, uint32_t count, uint32_t length);

/* Whether turn_bytes() may have said all of these: the peer's come from a socket that anybody may
   write to, and what is said goes into a parameter file. */
bool turn_is_heard(const uint32_t *bytes, uint32_t count, uint32_t length);

/* The median; sorts. 0 of none. */
uint32_t turn_median(uint32_t *bytes, uint32_t count);

#endif
