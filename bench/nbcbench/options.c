#include "nbcbench.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static int own_rank;
/* What the options below are read into. */
static struct options given = {.tests = "all",
                               .repetitions = 50,
                               .warmups = 5,
                               .test_bytes = 2048,
                               .element = -1,
                               .derived = DERIVED_NONE,
                               .buffers = 1,
                               .label = ""};

static int complain(const char *option, const char *value, const char *expected)
{
    if (own_rank == 0) {
        fprintf(stderr, "nbcbench: %s '%s': expected %s\n", option, value, expected);
    }
    return -EINVAL;
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

/* "A-B" or "A". */
static int parse_range(char *text, int *first, int *last)
{
    char *rest = text, *low = strsep(&rest, "-");

    return parse_number(low, 1, first) == 0 &&
                   parse_number(rest != NULL ? rest : low, *first, last) == 0
               ? 0
               : -EINVAL;
}

static int parse_ranks(const char *text)
{
    char copy[64];

    return (size_t)snprintf(copy, sizeof(copy), "%s", text) < sizeof(copy)
               ? parse_range(copy, &given.ranks_min, &given.ranks_max)
               : -EINVAL;
}

/* "A,B-C,..." */
static int parse_sizes(const char *list)
{
    char copy[256], *rest = copy, *item;
    int last;

    if ((size_t)snprintf(copy, sizeof(copy), "%s", list) >= sizeof(copy)) {
        return -EINVAL;
    }
    given.size_count = 0;
    while ((item = strsep(&rest, ",")) != NULL) {
        int first;

        if (parse_range(item, &first, &last) != 0) {
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

static int parse_tests(const char *list)
{
    given.tests = list;
    for (const char *p = list; *p != '\0' && strcmp(list, "all") != 0;) {
        size_t length = strcspn(p, ",");

        if (collective_find(p, length) == NULL) {
            return -EINVAL;
        }
        p += length + (p[length] == ',');
    }
    return 0;
}

static int parse_root(const char *text)
{
    given.root = ROOT_ROTATES;
    return strcmp(text, "rotate") == 0 ? 0 : parse_number(text, 0, &given.root);
}

static int parse_tails(const char *list)
{
    char copy[64], *rest = copy, *item;

    snprintf(copy, sizeof(copy), "%s", list);
    given.tail_count = 0;
    while ((item = strsep(&rest, ",")) != NULL) {
        long percent;

        if (given.tail_count == BENCH_TAILS || cli_parse_long(item, 1, 99, &percent) != 0) {
            return -EINVAL;
        }
        given.tails[given.tail_count++] = (int)percent;
    }
    return 0;
}

static int parse_counter(const char *path)
{
    given.counter = path;
    return counter_check(path);
}

static int parse_plans(const char *path)
{
    given.plans = true;
    return plans_read(path, own_rank);
}

static const char *const formats[] = {"table", "osu", "imb", "csv", "json", NULL};
static const char *const kinds[] = {"contiguous", "vector", "indexed", NULL};
static const char *const starts[] = {"clock", "barrier", NULL};

enum kind {
    FLAG,  /* bool */
    TEXT,  /* const char * */
    COUNT, /* int: a whole number, at least `low` */
    WORD,  /* int: which of the words */
    PARSED,
};

static const struct row {
    char letter;
    const char *name, *value, *help;
    enum kind kind;
    void *where;
    int low;
    const char *const *words;
    int (*parse)(const char *text);
    const char *expected; /* NULL: what reads it has said it */
} rows[] = {
    {'t', "tests", "LIST", "collectives, comma-separated, as MPI_Alltoall,... (default: all)",
     PARSED, .parse = parse_tests,
     .expected = "MPI_Barrier, MPI_Bcast, ... (nbcbench -h; names as in MPI)"},
    {'p', "ranks", "A-B",
     "numbers of ranks, doubling from A to B (default: those that mpirun started)", PARSED,
     .parse = parse_ranks, .expected = "A-B, ranks, A at least 1"},
    {'s', "sizes", "LIST",
     "bytes of a block: A, or A-B, doubling from A to B,... (default: 1-65536)", PARSED,
     .parse = parse_sizes, .expected = "A or A-B,..., bytes, A at least 1, 64 sizes"},
    {'r', "repetitions", "N", "samples, whose median is the result (default: 50)", COUNT,
     .where = &given.repetitions, .low = 1},
    {'w', "warmups", "N", "operations before the first sample (default: 5)", COUNT,
     .where = &given.warmups, .low = 0},
    {'n', "nonblocking", NULL, "the nonblocking operations as well, with computation", FLAG,
     .where = &given.nonblocking},
    {'c', "test-bytes", "N", "MPI_Test once per so many bytes of the block (default: 2048)", COUNT,
     .where = &given.test_bytes, .low = 1},
    {'P', "persistent", NULL, "persistent operations in place of the blocking ones", FLAG,
     .where = &given.persistent},
    {'I', "in-place", NULL, "MPI_IN_PLACE where the operation has it", FLAG,
     .where = &given.in_place},
    {'R', "root", "N|rotate", "the root, or another one for each operation (default: 0)", PARSED,
     .parse = parse_root, .expected = "a rank, or rotate"},
    {'T', "type", "NAME", "byte, int, int64, float or double (default: byte; int in reductions)",
     WORD, .where = &given.element, .words = element_names,
     .expected = "byte, int, int64, float or double"},
    {'D', "derived", "KIND", "one derived type per block: contiguous, vector or indexed", WORD,
     .where = &given.derived, .words = kinds, .expected = "contiguous, vector or indexed"},
    {'B', "buffers", "N", "pairs of buffers that are used in turn (default: 1)", COUNT,
     .where = &given.buffers, .low = 1},
    {'S', "sync", "HOW", "samples start by the clock, or after a barrier (default: clock)", WORD,
     .where = &given.barrier, .words = starts, .expected = "clock or barrier"},
    {'k', "counter", "FILE",
     "column 'counted': by how much one operation increases the number in FILE (a port's "
     "hw_counters/sent_pkts)",
     PARSED, .parse = parse_counter, .expected = "a file that holds one number"},
    {'v', "verify", NULL, "check the data after each size", FLAG, .where = &given.verify},
    {'F', "format", "NAME", "table, osu, imb, csv or json (default: table)", WORD,
     .where = &given.format, .words = formats, .expected = "table, osu, imb, csv or json"},
    {'f', "full", NULL, "minimum, mean and maximum over the ranks, confidence interval", FLAG,
     .where = &given.full},
    {'z', "tail", "LIST", "percentiles of the samples: 50,90,99", PARSED, .parse = parse_tails,
     .expected = "percentiles from 1 to 99, comma-separated, at most 8"},
    {'M', "metadata", NULL, "versions, machine, device, parameters and fabric file first", FLAG,
     .where = &given.metadata},
    {'o', "csv", "FILE", "write comma-separated values to FILE (-: stdout)", TEXT,
     .where = &given.csv},
    {'l', "label", "TEXT", "first column of the CSV", TEXT, .where = &given.label},
    {'A', "plans", "FILE",
     "run each plan in FILE in turn, set through MPI_T; lines: MPI_CALL COLLECTIVE "
     "ALGORITHM|chosen RADIX SEGMENT",
     PARSED, .parse = parse_plans},
    {'h', "help", NULL, "this text", FLAG, .where = NULL},
    {'V', "version", NULL, "which nbcbench this is", FLAG, .where = NULL},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), HELP_COLUMN = 24 };

static void print_help(void)
{
    char left[64];

    puts("usage: mpirun -np P nbcbench [OPTION...]");
    for (int i = 0; i < ROWS; i++) {
        snprintf(left, sizeof(left), "  -%c, --%s %s", rows[i].letter, rows[i].name,
                 rows[i].value != NULL ? rows[i].value : "");
        cli_print_help(stdout, left, HELP_COLUMN, rows[i].help);
    }
}

static int take(const struct row *row, const char *text)
{
    switch (row->kind) {
    case FLAG:
        *(bool *)row->where = true;
        return 0;
    case TEXT:
        *(const char **)row->where = text;
        return 0;
    case COUNT:
        return parse_number(text, row->low, row->where);
    case WORD:
        for (int i = 0; row->words[i] != NULL; i++) {
            if (strcmp(text, row->words[i]) == 0) {
                *(int *)row->where = i;
                return 0;
            }
        }
        return -EINVAL;
    default:
        return row->parse(text);
    }
}

static int take_option(int letter, const char *text)
{
    const struct row *row = rows;
    char name[] = {'-', (char)letter, '\0'};

    while (row->letter != letter) {
        row++;
    }
    if (take(row, text) == 0) {
        return 0;
    }
    return row->kind == COUNT
               ? complain(name, text,
                          row->low > 0 ? "a whole number, at least 1" : "a whole number")
           : row->expected != NULL ? complain(name, text, row->expected)
                                   : -EINVAL;
}

static int check_together(const struct options *o, int ranks)
{
    if (o->ranks_max > ranks) {
        return complain("-p", "", "no more ranks than mpirun started");
    }
    if (o->root >= o->ranks_min) {
        return complain("-R", "", "a rank of the smallest number of ranks");
    }
    if (o->root == ROOT_ROTATES && o->persistent) {
        return complain("-R", "rotate", "a fixed root, which persistent operations have");
    }
    if (o->csv != NULL && strcmp(o->csv, "-") == 0 && o->format != FORMAT_TABLE) {
        return complain("-o", "-", "a file, where another format goes to the output");
    }
    return 0;
}

int options_parse(int argc, char **argv, int rank, struct options *options)
{
    struct option long_options[ROWS + 1] = {{NULL, 0, NULL, 0}};
    char short_options[2 * ROWS + 1] = "";
    int option, ranks;

    own_rank = rank;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    given.ranks_min = given.ranks_max = ranks;
    (void)parse_sizes("1-65536");
    for (int i = 0; i < ROWS; i++) {
        int takes = rows[i].kind == FLAG ? no_argument : required_argument;

        long_options[i] = (struct option){rows[i].name, takes, NULL, rows[i].letter};
        sprintf(short_options + strlen(short_options), "%c%s", rows[i].letter, takes ? ":" : "");
    }
    opterr = rank == 0;
    while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
        if (option == '?') { /* getopt said which */
            if (rank == 0) {
                fputs("nbcbench -h lists the options\n", stderr);
            }
            return -EINVAL;
        }
        if (option == 'h' || option == 'V') {
            if (rank == 0 && option == 'h') {
                print_help();
            } else if (rank == 0) {
                puts("ibshift " PACKAGE_VERSION);
            }
            return 1;
        }
        if (take_option(option, optarg) != 0) {
            return -EINVAL;
        }
    }
    if (optind < argc) {
        return complain("argument", argv[optind], "options only (nbcbench -h)");
    }
    given.argc = argc;
    given.argv = argv;
    *options = given;
    return check_together(options, ranks);
}
