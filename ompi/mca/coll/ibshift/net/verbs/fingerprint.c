/*
 * Blocks of 128 bytes go into 16 sums side by side, so that a processor with vectors has four of them
 * in one instruction; what is left, and then the sums, word by word into one. Each half of a sum comes
 * to be its own two halves, signed, times two factors, at every step: so the place of a word counts, and
 * one changed sign is not undone by another. That is one instruction where each has 16 factors.
 */
#include "net/verbs/fingerprint.h"

#include <stdbool.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { SUMS = 16, WORD = sizeof(uint64_t), BLOCK = SUMS * WORD };

/* Prime, and so large that two sums become the same only where both halves differ by a multiple of the
 * other's factor. */
enum { LOW_FACTOR = 32749, HIGH_FACTOR = -32143 };

static const uint64_t factor = 0x9e3779b97f4a7c15u;
static const uint64_t first_sum = 0xa0761d6478bd642fu;

/* No two alike; as data, for to compute them would take as long as 1 KiB does. */
static const uint64_t first_sums[SUMS] = {
    0xa0761d6478bd642f, 0x3ead971df807e044, 0xdce510d777525c59, 0x7b1c8a90f69cd86e,
    0x1954044a75e75483, 0xb78b7e03f531d098, 0x55c2f7bd747c4cad, 0xf3fa7176f3c6c8c2,
    0x9231eb30731144d7, 0x306964e9f25bc0ec, 0xcea0dea371a63d01, 0x6cd8585cf0f0b916,
    0x0b0fd216703b352b, 0xa9474bcfef85b140, 0x477ec5896ed02d55, 0xe5b63f42ee1aa96a};

/* A word that is summed and stored as it was when it was looked at: who may write to it is asked once. */
static inline uint64_t look(const uint8_t *at)
{
    uint64_t word = ibshift_fingerprint_word(at);

    __asm__ volatile("" : "+r"(word));
    return word;
}

static inline void store(uint8_t *to, uint64_t word)
{
    if (to != NULL) {
        memcpy(to, &word, sizeof(word));
    }
}

static inline uint8_t *behind(uint8_t *to, size_t length)
{
    return to == NULL ? NULL : to + length;
}

static inline uint32_t next_half(uint32_t half)
{
    return (uint32_t)((int16_t)half * LOW_FACTOR + (int16_t)(half >> 16) * HIGH_FACTOR);
}

static inline void plain_blocks(uint64_t sums[SUMS], uint8_t *to, const uint8_t *from,
                                size_t length)
{
    for (size_t at = 0; at < length; at += WORD) {
        uint64_t *sum = &sums[at / WORD % SUMS], word = look(from + at);

        store(behind(to, at), word);
        word ^= *sum;
        *sum = next_half((uint32_t)word) | (uint64_t)next_half((uint32_t)(word >> 32)) << 32;
    }
}

#if defined(__x86_64__)
/* In line, so that the sums stay in registers. */
__attribute__((target("avx2"), always_inline)) static inline __m256i add(__m256i sum, uint8_t *to,
                                                                         const uint8_t *from)
{
    __m256i words = _mm256_loadu_si256((const __m256i *)(const void *)from);

    __asm__ volatile("" : "+x"(words));
    if (to != NULL) {
        _mm256_storeu_si256((__m256i *)(void *)to, words);
    }
    return _mm256_madd_epi16(
        _mm256_xor_si256(words, sum),
        _mm256_set1_epi32((int)((uint32_t)HIGH_FACTOR << 16 | (uint32_t)LOW_FACTOR)));
}

struct four {
    __m256i a, b, c, d;
};

__attribute__((target("avx2"), always_inline)) static inline void
add_block(struct four *sums, uint8_t *to, const uint8_t *from)
{
    enum { VECTOR = sizeof(__m256i) };

    sums->a = add(sums->a, to, from);
    sums->b = add(sums->b, behind(to, VECTOR), from + VECTOR);
    sums->c = add(sums->c, behind(to, 2 * VECTOR), from + 2 * VECTOR);
    sums->d = add(sums->d, behind(to, 3 * VECTOR), from + 3 * VECTOR);
}

/* Two blocks at a time, counted up to 0: of so short a loop the counting is a fifth. */
__attribute__((target("avx2"), always_inline)) static inline void
vector_blocks(uint64_t sums[SUMS], uint8_t *to, const uint8_t *from, size_t length)
{
    __m256i *all = (__m256i *)(void *)sums;
    struct four four = {_mm256_loadu_si256(all), _mm256_loadu_si256(all + 1),
                        _mm256_loadu_si256(all + 2), _mm256_loadu_si256(all + 3)};

    if (length % ((size_t)2 * BLOCK) != 0) {
        add_block(&four, to, from);
        from += BLOCK;
        to = behind(to, BLOCK);
        length -= BLOCK;
    }
    from += length;
    to = behind(to, length);
    for (ptrdiff_t at = -(ptrdiff_t)length; at != 0; at += (ptrdiff_t)2 * BLOCK) {
        add_block(&four, to == NULL ? NULL : to + at, from + at);
        add_block(&four, to == NULL ? NULL : to + at + BLOCK, from + at + BLOCK);
    }
    _mm256_storeu_si256(all, four.a);
    _mm256_storeu_si256(all + 1, four.b);
    _mm256_storeu_si256(all + 2, four.c);
    _mm256_storeu_si256(all + 3, four.d);
}

__attribute__((target("avx2"))) static void vector_look(uint64_t sums[SUMS], const uint8_t *from,
                                                        size_t length)
{
    vector_blocks(sums, NULL, from, length);
}

__attribute__((target("avx2"))) static void vector_copy(uint64_t sums[SUMS], uint8_t *to,
                                                        const uint8_t *from, size_t length)
{
    if (to == NULL) {
        __builtin_unreachable(); /* else each vector would look */
    }
    vector_blocks(sums, to, from, length);
}

static bool has_vectors(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}
#else
static void vector_look(uint64_t sums[SUMS], const uint8_t *from, size_t length)
{
    plain_blocks(sums, NULL, from, length);
}

static void vector_copy(uint64_t sums[SUMS], uint8_t *to, const uint8_t *from, size_t length)
{
    plain_blocks(sums, to, from, length);
}

static bool has_vectors(void)
{
    return false;
}
#endif

/* Not in line: short data need not make room for the sums. */
__attribute__((noinline)) static uint64_t sum_blocks(uint8_t *to, const uint8_t *from,
                                                     size_t length, bool may_vector)
{
    uint64_t sums[SUMS], sum = first_sum;

    memcpy(sums, first_sums, sizeof(sums));
    if (!may_vector || !has_vectors()) {
        plain_blocks(sums, to, from, length);
    } else if (to != NULL) {
        vector_copy(sums, to, from, length);
    } else {
        vector_look(sums, from, length);
    }
    for (int i = 0; i < SUMS; i += 2) {
        sum = ibshift_fingerprint_mix(sum ^ sums[i], sums[i + 1] ^ factor);
    }
    return sum;
}

/* Folded into each of the three below. */
__attribute__((always_inline)) static inline uint64_t fingerprint(uint8_t *to, const uint8_t *from,
                                                                  size_t length, bool may_vector)
{
    size_t blocks = length - length % BLOCK;
    uint64_t sum = blocks == 0 ? first_sum : sum_blocks(to, from, blocks, may_vector), word = 0;
    const uint8_t *end = from + length;

    for (from += blocks, to = behind(to, blocks); end - from >= WORD;
         from += WORD, to = behind(to, WORD)) {
        word = look(from);
        store(to, word);
        sum = ibshift_fingerprint_mix(sum ^ word, factor);
    }
    if (from != end) {
        word = 0;
        memcpy(&word, from, (size_t)(end - from));
        __asm__ volatile("" : "+r"(word));
        if (to != NULL) {
            memcpy(to, &word, (size_t)(end - from));
        }
        sum = ibshift_fingerprint_mix(sum ^ word, factor);
    }
    return sum;
}

uint64_t ibshift_fingerprint(const void *data, size_t length)
{
    return fingerprint(NULL, data, length, true);
}

uint64_t ibshift_fingerprint_copy(void *to, const void *from, size_t length)
{
    return fingerprint(to, from, length, true);
}

uint64_t ibshift_fingerprint_plainly(void *to, const void *from, size_t length)
{
    return fingerprint(to, from, length, false);
}
