/* Parameters beside each other: what has no effect, what nobody knows, what ranks must share. */
#include "coll_ibshift.h"
#include "coll_ibshift_search.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "OMPI_MCA_coll_ibshift_";

uint64_t ibshift_digest(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < size; i++) {
        sum = (sum ^ byte[i]) * 0x100000001b3u;
    }
    return sum;
}

uint64_t ibshift_params_digest(void)
{
    const struct ibshift_params *p = &ibshift_params;
    uint64_t sum = ibshift_digest(IBSHIFT_DIGEST, &p->window, sizeof(p->window));

    sum = ibshift_digest(sum, p->algorithm, sizeof(p->algorithm));
    sum = ibshift_digest(sum, p->radix, sizeof(p->radix));
    sum = ibshift_digest(sum, p->pace, strlen(p->pace));
    return ibshift_digest(sum, p->segment, sizeof(p->segment));
}

/* A word and the known name that begins most like it. */
struct nearest {
    const char *word;
    char name[64];
    size_t alike;
    bool is_known;
};

static void compare(void *context, const char *name)
{
    struct nearest *nearest = context;
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

static void contradiction(const char *which)
{
    ibshift_help_once_a_job("contradiction", which, "without it");
}

static void check_collective(enum ibshift_collective collective)
{
    const struct ibshift_alg *forced = ibshift_forced_row(collective);
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
