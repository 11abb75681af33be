#include "fabric/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/lines.h"
#include "fabric/graph/random.h"

enum { RATIO_MAX = 1000000 };

struct matrix {
    uint64_t *at; /* [from * ranks + to] */
    uint32_t ranks;
    double bytes;
    uint64_t number, seed;
    uint32_t *list; /* of all ranks, to be shuffled */
};

static uint64_t *block(const struct matrix *m, uint32_t from, uint32_t to)
{
    return &m->at[(size_t)from * m->ranks + to];
}

/* What a rank has for all others, in so many parts. */
static uint64_t part_of(const struct matrix *m, uint64_t parts)
{
    return (uint64_t)(m->bytes * (m->ranks - 1) / (double)parts);
}

static void shuffle(struct matrix *m)
{
    for (uint32_t i = 0; i < m->ranks; i++) {
        m->list[i] = i;
    }
    ibshift_random_shuffle(&m->seed, m->list, m->ranks);
}

static void make_uniform(struct matrix *m)
{
    for (size_t i = 0; i < (size_t)m->ranks * m->ranks; i++) {
        m->at[i] = (uint64_t)m->bytes;
    }
}

static void make_random(struct matrix *m)
{
    for (size_t i = 0; i < (size_t)m->ranks * m->ranks; i++) {
        m->at[i] = (uint64_t)(2 * m->bytes * ibshift_random_share(&m->seed));
    }
}

static void make_spread(struct matrix *m)
{
    for (size_t i = 0; i < (size_t)m->ranks * m->ranks; i++) {
        double bytes = m->bytes * pow((double)m->number, -ibshift_random_share(&m->seed));

        m->at[i] = bytes < 1 ? 1 : (uint64_t)bytes;
    }
}

static void make_builder(struct matrix *m)
{
    uint32_t half = m->ranks / 2;

    make_spread(m);
    for (uint32_t from = 0; from < m->ranks; from++) {
        uint32_t nothing = from < half ? half : m->ranks;

        memset(block(m, from, 0), 0, nothing * sizeof(uint64_t));
    }
}

static void make_topk(struct matrix *m)
{
    uint64_t few = m->number;

    for (uint32_t from = 0; from < m->ranks; from++) {
        shuffle(m);
        for (uint32_t i = 0, dealt = 0; i < m->ranks && dealt < few; i++) {
            if (m->list[i] != from) {
                *block(m, from, m->list[i]) = part_of(m, few);
                dealt++;
            }
        }
    }
}

static void make_hot(struct matrix *m)
{
    double more = (double)m->number / 100;
    double less = m->ranks > more ? (m->ranks - more) / (m->ranks - 1) : 0;
    uint32_t hot = ibshift_random_below(&m->seed, m->ranks);

    make_random(m);
    for (uint32_t from = 0; from < m->ranks; from++) {
        for (uint32_t to = 0; to < m->ranks; to++) {
            double bytes = (double)*block(m, from, to) * (to == hot ? more : less);

            *block(m, from, to) = (uint64_t)bytes;
        }
    }
}

static void make_giant(struct matrix *m)
{
    uint32_t from = ibshift_random_below(&m->seed, m->ranks);
    uint32_t distance = 1 + ibshift_random_below(&m->seed, m->ranks - 1);

    make_uniform(m);
    *block(m, from, (from + distance) % m->ranks) *= m->number;
}

/* A shift of a shuffled list moves every rank. */
static void make_sparse(struct matrix *m)
{
    for (uint64_t k = 0; k < m->number; k++) {
        shuffle(m);
        for (uint32_t i = 0; i < m->ranks; i++) {
            *block(m, m->list[i], m->list[(i + 1) % m->ranks]) += part_of(m, m->number);
        }
    }
}

static const struct kind {
    const char *name;
    void (*make)(struct matrix *m);
    int numbers; /* the last is the seed */
    const char *wants;
} kinds[] = {{"uniform", make_uniform, 0, "no number"},
             {"random", make_random, 1, "a seed"},
             {"spread", make_spread, 2, "a ratio from 1 to 1000000 and a seed"},
             {"builder", make_builder, 2, "a ratio from 1 to 1000000 and a seed"},
             {"topk", make_topk, 2, "a number of ranks from 1 to 1000000 and a seed"},
             {"hot", make_hot, 2, "per cent from 1 to 1000000 and a seed"},
             {"giant", make_giant, 2, "a factor from 1 to 1000000 and a seed"},
             {"sparse", make_sparse, 2, "a number of permutations from 1 to 1000000 and a seed"}};

static const struct kind *kind_of(const char *text, size_t *length)
{
    *length = strcspn(text, ":");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strlen(kinds[i].name) == *length && strncmp(text, kinds[i].name, *length) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

bool matrix_is_made(const char *text)
{
    size_t length;

    return kind_of(text, &length) != NULL;
}

/* ":NUMBER" as often as wanted, and nothing behind. */
static bool take_numbers(const char *text, int count, uint64_t numbers[2])
{
    char *end = (char *)(uintptr_t)text;

    for (int i = 0; i < count; i++) {
        const char *number = end + 1;

        if (*end != ':' || *number < '0' || *number > '9') {
            return false;
        }
        errno = 0;
        numbers[i] = strtoull(number, &end, 10);
        if (errno != 0) {
            return false;
        }
    }
    return *end == '\0';
}

static int make(const struct kind *kind, struct matrix *m)
{
    m->list = malloc(m->ranks * sizeof(*m->list));
    if (m->list == NULL) {
        return -ENOMEM;
    }
    if (m->ranks > 1) {
        kind->make(m);
    }
    free(m->list);
    for (uint32_t i = 0; i < m->ranks; i++) {
        *block(m, i, i) = 0;
    }
    return 0;
}

static int read_path(uint64_t *into, uint32_t ranks, const char *path, struct ibshift_error *err)
{
    struct ibshift_error why;
    FILE *file = ibshift_lines_file(path, &why);
    int rc;

    if (file == NULL) {
        return ibshift_fail(err, -EINVAL, "%.240s (wants " MATRIX_HELP ")", why.text);
    }
    rc = matrix_read(into, ranks, file, path, err);
    fclose(file);
    return rc;
}

int matrix_fill(uint64_t *into, uint32_t ranks, const char *text, uint64_t bytes,
                struct ibshift_error *err)
{
    struct matrix m = {.at = into, .ranks = ranks, .bytes = (double)bytes};
    uint64_t numbers[2] = {0};
    size_t length;
    const struct kind *kind = kind_of(text, &length);

    if (kind == NULL) {
        return read_path(into, ranks, text, err);
    }
    if (kind->make == make_topk && take_numbers(text + length, 2, numbers) && numbers[0] >= ranks) {
        return ibshift_fail(err, -EINVAL, "%.60s: of %u ranks each has %u others", text, ranks,
                            ranks - 1);
    }
    if (!take_numbers(text + length, kind->numbers, numbers) ||
        (kind->numbers == 2 && (numbers[0] == 0 || numbers[0] > RATIO_MAX))) {
        return ibshift_fail(err, -EINVAL, "%.60s: %s wants %s", text, kind->name, kind->wants);
    }
    m.number = numbers[0];
    m.seed = kind->numbers == 2 ? numbers[1] : numbers[0];
    return make(kind, &m) == 0 ? 0 : ibshift_fail(err, -ENOMEM, "no memory");
}

int matrix_check(const uint64_t *bytes, uint32_t ranks, const char *text, struct ibshift_error *err)
{
    for (size_t i = 0; i < (size_t)ranks * ranks; i++) {
        if (bytes[i] > 0) {
            return 0;
        }
    }
    return ibshift_fail(err, -EINVAL, "%.200s: nobody has anything for another rank", text);
}

int matrix_read(uint64_t *into, uint32_t ranks, FILE *file, const char *name,
                struct ibshift_error *err)
{
    char text[256];

    for (unsigned line = 1; fgets(text, sizeof(text), file) != NULL; line++) {
        long long from, to, bytes;
        char rest;
        int count;

        uint64_t *block;

        text[strcspn(text, "#")] = '\0';
        count = sscanf(text, " %lld %lld %lld %c", &from, &to, &bytes, &rest);
        if (strspn(text, " \t\r\n") == strlen(text)) {
            continue;
        }
        if (count != 3) {
            return ibshift_fail(err, -EINVAL, "%s:%u: wants FROM TO BYTES", name, line);
        }
        if (from < 0 || to < 0 || from >= ranks || to >= ranks || from == to) {
            return ibshift_fail(err, -EINVAL, "%s:%u: wants two of the ranks 0 to %u", name, line,
                                ranks - 1);
        }
        block = &into[(size_t)from * ranks + (size_t)to];
        if (bytes < 0 || bytes > MATRIX_MOST) {
            return ibshift_fail(err, -EINVAL, "%s:%u: wants 0 to %d bytes", name, line,
                                MATRIX_MOST);
        }
        *block += (uint64_t)bytes;
        if (*block > MATRIX_MOST) {
            return ibshift_fail(err, -EINVAL, "%s:%u: from %lld to %lld more than %d bytes in all",
                                name, line, from, to, MATRIX_MOST);
        }
    }
    return ferror(file) ? ibshift_fail(err, -EINVAL, "%s: cannot be read", name) : 0;
}
