/* Parameters beside each other: what has no effect, what nobody knows, what ranks must share. */
#include "coll_ibshift.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "choose/digest.h"

static const char prefix[] = "OMPI_MCA_coll_ibshift_";

struct agreed {
    uint64_t sum;
    char *text;
    size_t size, length;
};

static void add_agreed(void *context, const struct ibshift_param_text *row)
{
    struct agreed *agreed = context;
    size_t room = agreed->size - agreed->length;
    int length;

    if (!row->all_ranks) {
        return;
    }
    agreed->sum = ibshift_digest(agreed->sum, row->name, strlen(row->name) + 1);
    agreed->sum = ibshift_digest(agreed->sum, row->value, strlen(row->value) + 1);
    if (0 != strcmp(row->value, row->initial)) {
        length = snprintf(agreed->text + agreed->length, room, "%s=%s;", row->name, row->value);
        agreed->length += length < 0 || (size_t)length >= room ? 0 : (size_t)length;
        agreed->text[agreed->length] = '\0';
    }
}

uint64_t ibshift_params_agreed(char *text, size_t size)
{
    struct agreed agreed = {.sum = IBSHIFT_DIGEST, .text = text, .size = size};

    text[0] = '\0';
    ibshift_params_visit(add_agreed, &agreed);
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const char *name = ibshift_alg_table[i]->name;

        agreed.sum = ibshift_digest(agreed.sum, name, strlen(name) + 1);
    }
    return agreed.sum;
}

struct difference {
    const char *theirs, *ours;
    char *words;
    size_t size;
    bool is_found;
};

/* What an agreed text says of the row; it is silent about a default. */
static const char *value_in(const char *text, const struct ibshift_param_text *row, int *length)
{
    size_t name = strlen(row->name);

    while ('\0' != *text) {
        size_t entry = strcspn(text, ";");

        if (0 == strncmp(text, row->name, name) && '=' == text[name]) {
            *length = (int)(entry - name - 1);
            return text + name + 1;
        }
        text += entry + (';' == text[entry]);
    }
    *length = (int)strlen(row->initial);
    return row->initial;
}

static void find_difference(void *context, const struct ibshift_param_text *row)
{
    struct difference *difference = context;
    int length, our_length;
    const char *theirs = value_in(difference->theirs, row, &length);
    const char *ours = value_in(difference->ours, row, &our_length);

    if (row->all_ranks && !difference->is_found &&
        (length != our_length || 0 != strncmp(theirs, ours, (size_t)length))) {
        snprintf(difference->words, difference->size, "its coll_ibshift_%s is %.*s, here %.*s",
                 row->name, length, theirs, our_length, ours);
        difference->is_found = true;
    }
}

bool ibshift_params_differ(const char *theirs, const char *ours, char *words, size_t size)
{
    struct difference difference = {.theirs = theirs, .ours = ours, .words = words, .size = size};

    ibshift_params_visit(find_difference, &difference);
    return difference.is_found;
}

/* A word and the known name that begins most like it. */
struct nearest {
    const char *word;
    char name[64];
    size_t alike;
    bool is_known;
};

static void compare(void *context, const struct ibshift_param_text *row)
{
    struct nearest *nearest = context;
    const char *name = row->name;
    size_t alike = 0;

    while ('\0' != name[alike] && name[alike] == nearest->word[alike]) {
        alike++;
    }
    nearest->is_known |= '\0' == name[alike] && '\0' == nearest->word[alike];
    if (alike >= nearest->alike) {
        nearest->alike = alike;
        snprintf(nearest->name, sizeof(nearest->name), "%s", name);
    }
}

/* mpirun hands over whatever it was given; Open MPI is silent about names that nobody registers. */
static void check_names(void)
{
    for (char **entry = environ; NULL != *entry; entry++) {
        struct nearest nearest = {.alike = 0};
        char word[64];

        if (0 != strncmp(*entry, prefix, sizeof(prefix) - 1)) {
            continue;
        }
        snprintf(word, sizeof(word), "%s", *entry + sizeof(prefix) - 1);
        word[strcspn(word, "=")] = '\0';
        nearest.word = word;
        ibshift_params_visit(compare, &nearest);
        if (!nearest.is_known) {
            ibshift_help_once_a_job("unknown-parameter", word, nearest.name);
        }
    }
}

struct ibshift_wish ibshift_params_wish(enum ibshift_collective collective)
{
    struct ibshift_wish wish = {.radix = (uint32_t)ibshift_params.radix[collective],
                                .segment = ibshift_params.segment[collective]};
    int place = ibshift_params.algorithm[collective];

    for (size_t i = 0; place > 0 && i < ibshift_alg_count; i++) {
        if (ibshift_alg_table[i]->collective == collective && 0 == --place) {
            wish.alg = ibshift_alg_table[i];
        }
    }
    return wish;
}

static void contradiction(const char *which)
{
    ibshift_help_once_a_job("contradiction", which, "without it");
}

static void check_collective(enum ibshift_collective collective)
{
    const struct ibshift_alg *forced = ibshift_params_wish(collective).alg;
    const char *name = ibshift_collective_name(collective);
    char which[256];

    if (NULL == forced) {
        return;
    }
    if (ibshift_params.radix[collective] > 0 && 0 == forced->radix_max) {
        snprintf(which, sizeof(which),
                 "coll_ibshift_%s_radix = %d: coll_ibshift_%s_algorithm = %s has no radix", name,
                 ibshift_params.radix[collective], name, forced->name);
        contradiction(which);
    }
    if (ibshift_params.segment[collective] > 0 && 0 == (forced->flags & IBSHIFT_ALG_SEGMENTS)) {
        snprintf(which, sizeof(which),
                 "coll_ibshift_%s_segment = %zu: coll_ibshift_%s_algorithm = %s has no segments",
                 name, ibshift_params.segment[collective], name, forced->name);
        contradiction(which);
    }
}

void ibshift_params_check(void)
{
    char which[256];

    check_names();
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        check_collective((enum ibshift_collective)i);
    }
    if ('\0' == ibshift_params.fabric[0] && 0 != strcmp(ibshift_params.order, "auto") &&
        0 != strcmp(ibshift_params.order, "rank")) {
        snprintf(which, sizeof(which),
                 "coll_ibshift_order = %.100s: there is no coll_ibshift_fabric to order",
                 ibshift_params.order);
        contradiction(which);
    }
}

bool ibshift_params_may_open(const char *path, char *why, size_t size)
{
    struct stat info;

    if (0 != stat(path, &info) || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
        return true;
    }
    snprintf(why, size, "%.200s: not a file, but a pipe or a device", path);
    return false;
}
