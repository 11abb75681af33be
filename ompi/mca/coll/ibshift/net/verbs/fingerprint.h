#ifndef IBSHIFT_NET_VERBS_FINGERPRINT_H
#define IBSHIFT_NET_VERBS_FINGERPRINT_H

/*
 * A fingerprint of data, of which any bytes may still be older ones. It is a part of the wire format:
 * the same on every processor. Both sides of a message pay for it, and both copy what they take it of, so
 * that one pass does both.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t ibshift_fingerprint_word(const void *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

/* Two words become one. */
static inline uint64_t ibshift_fingerprint_mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t ibshift_fingerprint(const void *data, size_t length);

/* The same, and copies it: what was looked at is what is there then, whoever writes to it. */
uint64_t ibshift_fingerprint_copy(void *to, const void *from, size_t length);

/* As it is where the processor has nothing better, for a test. */
uint64_t ibshift_fingerprint_plainly(void *to, const void *from, size_t length);

#endif
