/* Digests (FNV-1a) of what all ranks must have alike. */
#ifndef IBSHIFT_CHOOSE_DIGEST_H
#define IBSHIFT_CHOOSE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define IBSHIFT_DIGEST 0xcbf29ce484222325u

/* sum: IBSHIFT_DIGEST, or what an earlier call returned. */
static inline uint64_t ibshift_digest(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *byte = (const unsigned char *)bytes;

    for (size_t i = 0; i < size; i++) {
        sum = (sum ^ byte[i]) * 0x100000001b3u;
    }
    return sum;
}

#endif
