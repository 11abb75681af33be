/*
 * Blocks of 128 bytes go into 16 sums side by side, so that a processor with vectors has four of them
 * in one instruction; what is left, and then the sums, word by word into one. Each sum is multiplied
 * by itself at every step: so the place of a word counts, and one changed sign is not undone by another.
 */
#include "net/verbs/fingerprint.h"

#include <stdbool.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { SUMS = 16, WORD = sizeof(uint64_t), BLOCK = SUMS * WORD };

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

static inline void plain_blocks(uint64_t sums[SUMS], uint8_t *to, const uint8_t *from,
                                size_t length)
{
    for (size_t at = 0; at < length; at += WORD) {
        uint64_t *sum = &sums[at / WORD % SUMS], word = look(from + at);

        store(behind(to, at), word);
        word ^= *sum;
        *sum = (word & UINT32_MAX) * (word >> 32) + word;
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
    words = _mm256_xor_si256(words, sum);
    return _mm256_add_epi64(_mm256_mul_epu32(words, _mm256_srli_epi64(words, 32)), words);
}

__attribute__((target("avx2"), always_inline)) static inline void
vector_blocks(uint64_t sums[SUMS], uint8_t *to, const uint8_t *from, size_t length)
{
    enum { VECTOR = sizeof(__m256i) };
    __m256i *all = (__m256i *)(void *)sums;
    __m256i a = _mm256_loadu_si256(all), b = _mm256_loadu_si256(all + 1),
            c = _mm256_loadu_si256(all + 2), d = _mm256_loadu_si256(all + 3);

    for (const uint8_t *end = from + length; from != end; from += BLOCK) {
        a = add(a, to, from);
        b = add(b, behind(to, VECTOR), from + VECTOR);
        c = add(c, behind(to, 2 * VECTOR), from + 2 * VECTOR);
        d = add(d, behind(to, 3 * VECTOR), from + 3 * VECTOR);
        to = behind(to, BLOCK);
    }
    _mm256_storeu_si256(all, a);
    _mm256_storeu_si256(all + 1, b);
    _mm256_storeu_si256(all + 2, c);
    _mm256_storeu_si256(all + 3, d);
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
