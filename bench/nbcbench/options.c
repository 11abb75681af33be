#include "nbcbench.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/matrix.h"
#include "options.h"
#include "sizes.h"

/* What the options below are read into. */
static struct options given = {.tests = "all",
                               .repetitions = 50,
                               .warmups = 5,
                               .test_bytes = 2048,
                               .element = -1,
                               .derived = DERIVED_NONE,
                               .buffers = 1,
                               .grid = 1,
                               .label = ""};

static int expect(const char *option, const char *value, int rc, const char *expected)
{
    return rc == 0 ? CLI_OK : cli_error(NULL, "%s '%s': expected %s", option, value, expected);
}

static int parse_number(const char *text, long low, int *value)
{
    long number;

    if (cli_parse_long(text, low, INT_MAX, &number) != 0) {
        return -EINVAL;
    }
    *value = (int)number;
    return 0;
}

/* With K and M. */
static bool read_bytes(const char *text, int low, int *value)
{
    uint64_t bytes = 0;
    bool is_read = cli_parse_bytes(text, strlen(text), &bytes) == 0;

    *value = bytes <= INT_MAX ? (int)bytes : 0;
    return is_read && *value >= low;
}

/* "A-B" or "A". */
static int parse_range(char *text, int *first, int *last)
{
    char *rest = text, *low = strsep(&rest, "-");

    return parse_number(low, 1, first) == 0 &&
                   parse_number(rest != NULL ? rest : low, *first, last) == 0
               ? 0
               : -EINVAL;
}

static int take_ranks(void *where, const char *text)
{
    char copy[64];
    int rc = (size_t)snprintf(copy, sizeof(copy), "%s", text) < sizeof(copy)
                 ? parse_range(copy, &given.ranks_min, &given.ranks_max)
                 : -EINVAL;

    (void)where;
    return expect("--ranks", text, rc, "A-B, ranks, A at least 1");
}

/* "A,B-C,..." */
static int parse_sizes(const char *list)
{
    char copy[256], *rest = copy, *item;

    if ((size_t)snprintf(copy, sizeof(copy), "%s", list) >= sizeof(copy)) {
        return -EINVAL;
    }
    given.size_count = 0;
    while ((item = strsep(&rest, ",")) != NULL) {
        char *low = strsep(&item, "-");
        int first, last;

        if (!read_bytes(low, 1, &first) || !read_bytes(item != NULL ? item : low, first, &last)) {
            return -EINVAL;
        }
        for (long size = first; size <= last; size *= 2) {
            if (given.size_count == BENCH_SIZES) {
                return -EINVAL;
            }
            given.sizes[given.size_count++] = (size_t)size;
        }
    }
    return 0;
}

static int take_sizes(void *where, const char *list)
{
    (void)where;
    return expect("--sizes", list, parse_sizes(list),
                  "A or A-B,..., bytes, A at least 1, 64 sizes");
}

static int take_tests(void *where, const char *list)
{
    (void)where;
    given.tests = list;
    for (const char *p = list; *p != '\0' && strcmp(list, "all") != 0;) {
        size_t length = strcspn(p, ",");

        if (collective_find(p, length) == NULL) {
            return expect("--tests", list, -EINVAL, "MPI_Barrier, bcast, ... (nbcbench -h)");
        }
        p += length + (p[length] == ',');
    }
    return CLI_OK;
}

static int take_root(void *where, const char *text)
{
    (void)where;
    given.root = ROOT_ROTATES;
    return expect("--root", text,
                  strcmp(text, "rotate") == 0 ? 0 : parse_number(text, 0, &given.root),
                  "a rank, or rotate");
}

static int take_tails(void *where, const char *list)
{
    char copy[64], *rest = copy, *item;

    (void)where;
    snprintf(copy, sizeof(copy), "%s", list);
    given.tail_count = 0;
    while ((item = strsep(&rest, ",")) != NULL) {
        long percent;

        if (given.tail_count == BENCH_TAILS || cli_parse_long(item, 1, 99, &percent) != 0) {
            return expect("--tail", list, -EINVAL,
                          "percentiles from 1 to 99, comma-separated, at most 8");
        }
        given.tails[given.tail_count++] = (int)percent;
    }
    return CLI_OK;
}

static int take_counter(void *where, const char *path)
{
    (void)where;
    given.counter = path;
    return expect("--counter", path, counter_check(path), "a file that holds one number");
}

static int take_plans(void *where, const char *path)
{
    (void)where;
    given.plans = true;
    return plans_read(path);
}

static const char *const formats[] = {"table", "osu", "imb", "csv", "json", NULL};
static const char *const kinds[] = {"contiguous", "vector", "indexed", NULL};
static const char *const starts[] = {"clock", "barrier", NULL};

static bool wants_version;

static const struct cli_option rows[] = {
    {"--tests", 't', CLI_TAKEN, "LIST",
     "collectives, comma-separated, as MPI_Alltoall,... (default: all)", .take = take_tests},
    {"--ranks", 'p', CLI_TAKEN, "A-B",
     "numbers of ranks, doubling from A to B (default: those that mpirun started)",
     .take = take_ranks},
    {"--sizes", 's', CLI_TAKEN, "LIST",
     "bytes of a block: A, or A-B, doubling from A to B,... (default: 1-64K)", .take = take_sizes},
    {"--repetitions", 'r', CLI_WHOLE, "N", "samples, whose median is the result (default: 50)",
     .where = &given.repetitions, .low = 1, .high = INT_MAX},
    {"--warmups", 'w', CLI_WHOLE, "N", "operations before the first sample (default: 5)",
     .where = &given.warmups, .low = 0, .high = INT_MAX},
    {"--nonblocking", 'n', CLI_FLAG, NULL, "the nonblocking operations as well, with computation",
     .where = &given.nonblocking},
    {"--test-bytes", 'c', CLI_WHOLE, "BYTES",
     "MPI_Test once per so many bytes of the block (default: 2048)", .where = &given.test_bytes,
     .low = 1, .high = INT_MAX},
    {"--idle", 'i', CLI_FLAG, NULL, "sleep in place of computing: ranks outnumber processors",
     .where = &given.idle},
    {"--persistent", 'P', CLI_FLAG, NULL, "persistent operations in place of the others",
     .where = &given.persistent},
    {"--in-place", 'I', CLI_FLAG, NULL, "MPI_IN_PLACE where the operation has it",
     .where = &given.in_place},
    {"--root", 'R', CLI_TAKEN, "N|rotate",
     "the root, or another one for each operation (default: 0)", .take = take_root},
    {"--type", 'T', CLI_CHOICE, "NAME",
     "byte, int, int64, float or double (default: byte; int in reductions)",
     .where = &given.element, .words = element_names},
    {"--derived", 'D', CLI_CHOICE, "KIND",
     "one derived type per block: contiguous, vector or indexed", .where = &given.derived,
     .words = kinds},
    {"--buffers", 'B', CLI_WHOLE, "N", "pairs of buffers that are used in turn (default: 1)",
     .where = &given.buffers, .low = 1, .high = INT_MAX},
    {"--grid", 'G', CLI_WHOLE, "N",
     "neighborhood collectives: dimensions of the periodic grid of the ranks (default: 1, a ring)",
     .where = &given.grid, .low = 1, .high = GRID_MOST},
    {"--matrix", 'm', CLI_TEXT, "MATRIX", "blocks of MPI_Alltoallv: " MATRIX_HELP,
     .where = &given.matrix},
    {"--sync", 'S', CLI_CHOICE, "HOW",
     "samples start by the clock, or after a barrier (default: clock)", .where = &given.barrier,
     .words = starts},
    {"--counter", 'k', CLI_TAKEN, "FILE",
     "column 'counted': by how much one operation increases the number in FILE (a port's "
     "hw_counters/sent_pkts)",
     .take = take_counter},
    {"--verify", 'v', CLI_FLAG, NULL, "check the data after each size", .where = &given.verify},
    {"--format", 'F', CLI_CHOICE, "NAME", "table, osu, imb, csv or json (default: table)",
     .where = &given.format, .words = formats},
    {"--full", 'f', CLI_FLAG, NULL, "minimum, mean and maximum over the ranks, confidence interval",
     .where = &given.full},
    {"--tail", 'z', CLI_TAKEN, "LIST", "percentiles of the samples: 50,90,99", .take = take_tails},
    {"--metadata", 'M', CLI_FLAG, NULL,
     "versions, machine, device, parameters and fabric file first", .where = &given.metadata},
    {"--csv", 'o', CLI_TEXT, "FILE", "write comma-separated values to FILE (-: stdout)",
     .where = &given.csv},
    {"--label", 'l', CLI_TEXT, "TEXT", "first column of the CSV", .where = &given.label},
    {"--plans", 'A', CLI_TAKEN, "FILE",
     "run each plan in FILE in turn, set through MPI_T; lines: MPI_CALL COLLECTIVE "
     "ALGORITHM|chosen RADIX SEGMENT",
     .take = take_plans},
    {"--version", 'V', CLI_FLAG, NULL, "which nbcbench this is", .where = &wants_version},
    {.name = NULL},
};

/* MPI's operations know no derived types. */
bool options_want(const struct options *o, const struct collective *c)
{
    if (c->reduces && o->derived != DERIVED_NONE) {
        return false;
    }
    if (strcmp(o->tests, "all") == 0) {
        return true;
    }
    for (const char *p = o->tests; *p != '\0';) {
        size_t length = strcspn(p, ",");

        if (collective_find(p, length) == c) {
            return true;
        }
        p += length + (p[length] == ',');
    }
    return false;
}

/* Rank 0 reads it for all. */
static int check_matrix(const struct options *o, int rank)
{
    const struct collective *c = collective_find("MPI_Alltoallv", strlen("MPI_Alltoallv"));
    char why[600];
    size_t most = 0;
    int rc = 0;

    if (o->matrix == NULL) {
        return CLI_OK;
    }
    if (!options_want(o, c) || o->in_place || o->derived != DERIVED_NONE) {
        return cli_error(NULL, "--matrix is for MPI_Alltoallv, without --in-place and --derived");
    }
    for (int i = 0; i < o->size_count; i++) {
        most = o->sizes[i] > most ? o->sizes[i] : most;
    }
    if (rank == 0 && sizes_check(o->matrix, o->ranks_min, most, why, sizeof(why)) != 0) {
        rc = cli_error(NULL, "--matrix: %s", why);
    }
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return rc;
}

static int check_together(const struct options *o, int ranks)
{
    if (o->ranks_max > ranks) {
        return expect("--ranks", "", -EINVAL, "no more ranks than mpirun started");
    }
    if (o->root >= o->ranks_min) {
        return expect("--root", "", -EINVAL, "a rank of the smallest number of ranks");
    }
    if (o->root == ROOT_ROTATES && o->persistent) {
        return expect("--root", "rotate", -EINVAL,
                      "a fixed root, which persistent operations have");
    }
    if (o->csv != NULL && strcmp(o->csv, "-") == 0 && o->format != FORMAT_TABLE) {
        return expect("--csv", "-", -EINVAL, "a file, where another format goes to the output");
    }
    return 0;
}

int options_parse(int argc, char **argv, int rank, struct options *options)
{
    struct cli_args args = {.usage = "(started by mpirun -np P)", .options = rows};
    int ranks, status;

    cli_program = "nbcbench";
    cli_is_mute = rank != 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    given.ranks_min = given.ranks_max = ranks;
    (void)parse_sizes("1-65536");
    status = cli_parse(&args, argc, argv);
    if (status == CLI_OK && !args.helped && wants_version && rank == 0) {
        puts("ibshift " PACKAGE_VERSION);
    }
    if (status != CLI_OK || args.helped || wants_version) {
        return status != CLI_OK ? -EINVAL : 1;
    }
    given.argc = argc;
    given.argv = argv;
    *options = given;
    return check_together(options, ranks) == CLI_OK && check_matrix(options, rank) == CLI_OK
               ? 0
               : -EINVAL;
}
