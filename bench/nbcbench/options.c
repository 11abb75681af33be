#include "nbcbench.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: mpirun -np P nbcbench [OPTION...]\n"
    "  -t, --tests LIST      collectives, comma-separated, as MPI_Alltoall,...\n"
    "                        (default: all)\n"
    "  -p, --ranks A-B       numbers of ranks, doubling from A to B (default: those\n"
    "                        that mpirun started)\n"
    "  -s, --sizes LIST      bytes of a block: A, or A-B, doubling from A to B,...\n"
    "                        (default: 1-65536)\n"
    "  -r, --repetitions N   samples, whose median is the result (default: 50)\n"
    "  -w, --warmups N       operations before the first sample (default: 5)\n"
    "  -n, --nonblocking     the nonblocking operations as well, with computation\n"
    "  -c, --test-bytes N    MPI_Test once per so many bytes of the block (default:\n"
    "                        2048)\n"
    "  -P, --persistent      persistent operations in place of the blocking ones\n"
    "  -I, --in-place        MPI_IN_PLACE where the operation has it\n"
    "  -R, --root N|rotate   the root, or another one for each operation (default:\n"
    "                        0)\n"
    "  -T, --type NAME       byte, int, int64, float or double (default: byte; int\n"
    "                        in reductions)\n"
    "  -D, --derived KIND    one derived type per block: contiguous, vector or\n"
    "                        indexed\n"
    "  -B, --buffers N       pairs of buffers that are used in turn (default: 1)\n"
    "  -S, --sync HOW        samples start by the clock, or after a barrier (default:\n"
    "                        clock)\n"
    "  -k, --counter FILE    column 'counted': by how much one operation increases\n"
    "                        the number in FILE (a port's hw_counters/sent_pkts)\n"
    "  -v, --verify          check the data after each size\n"
    "  -F, --format NAME     table, osu, imb, csv or json (default: table)\n"
    "  -f, --full            minimum, mean and maximum over the ranks, confidence\n"
    "                        interval\n"
    "  -z, --tail LIST       percentiles of the samples: 50,90,99\n"
    "  -M, --metadata        versions, machine, device, parameters and fabric file\n"
    "                        first\n"
    "  -o, --csv FILE        write comma-separated values to FILE (-: stdout)\n"
    "  -l, --label TEXT      first column of the CSV\n"
    "  -A, --plans FILE      run each plan in FILE in turn, set through MPI_T; lines:\n"
    "                        MPI_CALL COLLECTIVE ALGORITHM|chosen RADIX SEGMENT\n"
    "  -h, --help            this text\n"
    "  -V, --version\n";

static const struct option long_options[] = {
    {"tests", required_argument, NULL, 't'},      {"ranks", required_argument, NULL, 'p'},
    {"sizes", required_argument, NULL, 's'},      {"repetitions", required_argument, NULL, 'r'},
    {"warmups", required_argument, NULL, 'w'},    {"nonblocking", no_argument, NULL, 'n'},
    {"test-bytes", required_argument, NULL, 'c'}, {"persistent", no_argument, NULL, 'P'},
    {"in-place", no_argument, NULL, 'I'},         {"root", required_argument, NULL, 'R'},
    {"type", required_argument, NULL, 'T'},       {"derived", required_argument, NULL, 'D'},
    {"buffers", required_argument, NULL, 'B'},    {"sync", required_argument, NULL, 'S'},
    {"counter", required_argument, NULL, 'k'},    {"verify", no_argument, NULL, 'v'},
    {"format", required_argument, NULL, 'F'},     {"full", no_argument, NULL, 'f'},
    {"tail", required_argument, NULL, 'z'},       {"metadata", no_argument, NULL, 'M'},
    {"csv", required_argument, NULL, 'o'},        {"label", required_argument, NULL, 'l'},
    {"plans", required_argument, NULL, 'A'},      {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},          {NULL, 0, NULL, 0},
};
static const char short_options[] = "t:p:s:r:w:nc:PIR:T:D:B:S:k:vF:fz:Mo:l:A:hV";

static int complain(int rank, const char *option, const char *value, const char *expected)
{
    if (rank == 0) {
        fprintf(stderr, "nbcbench: %s '%s': expected %s\n", option, value, expected);
    }
    return -EINVAL;
}

static int parse_number(const char *text, long low, long *value)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < low || number > INT_MAX) {
        return -EINVAL;
    }
    *value = number;
    return 0;
}

/* "A-B" or "A". */
static int parse_range(const char *text, long low, long *first, long *last)
{
    char copy[64];
    char *dash;

    if (strlen(text) >= sizeof(copy)) {
        return -EINVAL;
    }
    strcpy(copy, text);
    dash = strchr(copy, '-');
    if (dash != NULL) {
        *dash = '\0';
    }
    if (parse_number(copy, low, first) != 0 ||
        parse_number(dash != NULL ? dash + 1 : copy, *first, last) != 0) {
        return -EINVAL;
    }
    return 0;
}

/* "A,B-C,..." */
static int parse_sizes(const char *list, struct options *o)
{
    char copy[256];
    char *rest = copy, *item;

    if (strlen(list) >= sizeof(copy)) {
        return -EINVAL;
    }
    strcpy(copy, list);
    o->size_count = 0;
    while ((item = strsep(&rest, ",")) != NULL) {
        long first, last;

        if (parse_range(item, 1, &first, &last) != 0) {
            return -EINVAL;
        }
        for (; first <= last; first *= 2) {
            if (o->size_count == BENCH_SIZES) {
                return -EINVAL;
            }
            o->sizes[o->size_count++] = (size_t)first;
        }
    }
    return 0;
}

static int parse_count(const char *option, const char *text, long low, int rank, int *count)
{
    long number;

    if (parse_number(text, low, &number) != 0) {
        return complain(rank, option, text,
                        low > 0 ? "a whole number, at least 1" : "a whole number");
    }
    *count = (int)number;
    return 0;
}

static int check_tests(const char *list, int rank)
{
    if (strcmp(list, "all") == 0) {
        return 0;
    }
    for (const char *p = list; *p != '\0';) {
        size_t length = strcspn(p, ",");

        if (collective_find(p, length) == NULL) {
            return complain(rank, "-t", p,
                            "MPI_Barrier, MPI_Bcast, ... (nbcbench -h; names as in MPI)");
        }
        p += length + (p[length] == ',');
    }
    return 0;
}

/* The place of the value among the words, which end with NULL. */
static int parse_word(const char *option, const char *value, const char *const words[],
                      const char *expected, int rank, int *place)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(value, words[i]) == 0) {
            *place = i;
            return 0;
        }
    }
    return complain(rank, option, value, expected);
}

static int parse_format(const char *value, int rank, struct options *o)
{
    static const char *const words[] = {"table", "osu", "imb", "csv", "json", NULL};
    int place = FORMAT_TABLE, status;

    status = parse_word("-F", value, words, "table, osu, imb, csv or json", rank, &place);
    o->format = (enum format)place;
    return status;
}

static int parse_derived(const char *value, int rank, struct options *o)
{
    static const char *const words[] = {"contiguous", "vector", "indexed", NULL};
    int place = 0, status;

    status = parse_word("-D", value, words, "contiguous, vector or indexed", rank, &place);
    o->derived = (enum derived)(place + DERIVED_CONTIGUOUS);
    return status;
}

static int parse_sync(const char *value, int rank, struct options *o)
{
    static const char *const words[] = {"clock", "barrier", NULL};
    int place = 0, status;

    status = parse_word("-S", value, words, "clock or barrier", rank, &place);
    o->barrier = place == 1;
    return status;
}

static int parse_type(const char *value, int rank, struct options *o)
{
    for (o->element = 0; element_name(o->element) != NULL; o->element++) {
        if (strcmp(value, element_name(o->element)) == 0) {
            return 0;
        }
    }
    return complain(rank, "-T", value, "byte, int, int64, float or double");
}

static int parse_root(const char *value, int rank, struct options *o)
{
    long root = ROOT_ROTATES;

    if (strcmp(value, "rotate") != 0 && parse_number(value, 0, &root) != 0) {
        return complain(rank, "-R", value, "a rank, or rotate");
    }
    o->root = (int)root;
    return 0;
}

static int parse_tails(const char *list, int rank, struct options *o)
{
    const char *p = list;

    for (o->tail_count = 0; *p != '\0'; o->tail_count++) {
        char *end;
        long percent = strtol(p, &end, 10);

        if (end == p || percent < 1 || percent > 99 || o->tail_count == BENCH_TAILS ||
            (*end != ',' && *end != '\0')) {
            o->tail_count = 0;
            break;
        }
        o->tails[o->tail_count] = (int)percent;
        p = end + (*end == ',');
    }
    return o->tail_count > 0
               ? 0
               : complain(rank, "-z", list, "percentiles from 1 to 99, comma-separated, at most 8");
}

/* The options without a value. */
static bool parse_flag(int option, struct options *o)
{
    switch (option) {
    case 'n':
        return o->nonblocking = true;
    case 'P':
        return o->persistent = true;
    case 'I':
        return o->in_place = true;
    case 'v':
        return o->verify = true;
    case 'f':
        return o->full = true;
    case 'M':
        return o->metadata = true;
    default:
        return false;
    }
}

static int parse_ranks(const char *value, int rank, struct options *o)
{
    long first = 0, last = 0;

    if (parse_range(value, 1, &first, &last) != 0) {
        return complain(rank, "-p", value, "A-B, ranks, A at least 1");
    }
    o->ranks_min = (int)first;
    o->ranks_max = (int)last;
    return 0;
}

static int parse_one(int option, const char *value, int rank, struct options *o)
{
    switch (option) {
    case 't':
        o->tests = value;
        return check_tests(value, rank);
    case 'p':
        return parse_ranks(value, rank, o);
    case 's':
        return parse_sizes(value, o) == 0
                   ? 0
                   : complain(rank, "-s", value, "A or A-B,..., bytes, A at least 1, 64 sizes");
    case 'r':
        return parse_count("-r", value, 1, rank, &o->repetitions);
    case 'w':
        return parse_count("-w", value, 0, rank, &o->warmups);
    case 'c':
        return parse_count("-c", value, 1, rank, &o->test_bytes);
    case 'B':
        return parse_count("-B", value, 1, rank, &o->buffers);
    case 'R':
        return parse_root(value, rank, o);
    case 'T':
        return parse_type(value, rank, o);
    case 'D':
        return parse_derived(value, rank, o);
    case 'S':
        return parse_sync(value, rank, o);
    case 'F':
        return parse_format(value, rank, o);
    case 'z':
        return parse_tails(value, rank, o);
    case 'k':
        o->counter = value;
        return counter_check(value, rank);
    case 'A':
        o->plans = true;
        return plans_read(value, rank);
    case 'o':
        o->csv = value;
        return 0;
    default:
        o->label = value;
        return 0;
    }
}

static int check_together(const struct options *o, int ranks, int rank)
{
    if (o->ranks_max > ranks) {
        return complain(rank, "-p", "", "no more ranks than mpirun started");
    }
    if (o->root >= o->ranks_min) {
        return complain(rank, "-R", "", "a rank of the smallest number of ranks");
    }
    if (o->root == ROOT_ROTATES && o->persistent) {
        return complain(rank, "-R", "rotate", "a fixed root, which persistent operations have");
    }
    if (o->csv != NULL && strcmp(o->csv, "-") == 0 && o->format != FORMAT_TABLE) {
        return complain(rank, "-o", "-", "a file, where another format goes to the output");
    }
    return 0;
}

int options_parse(int argc, char **argv, int rank, struct options *options)
{
    int option, ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    *options = (struct options){.tests = "all",
                                .ranks_min = ranks,
                                .ranks_max = ranks,
                                .repetitions = 50,
                                .warmups = 5,
                                .test_bytes = 2048,
                                .element = -1,
                                .buffers = 1,
                                .label = ""};
    (void)parse_sizes("1-65536", options);
    opterr = rank == 0;
    while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
        if (option == '?') { /* getopt said which */
            if (rank == 0) {
                fputs("nbcbench -h lists the options\n", stderr);
            }
            return -EINVAL;
        }
        if (option == 'h' || option == 'V') {
            if (rank == 0) {
                fputs(option == 'h' ? usage : "ibshift " PACKAGE_VERSION "\n", stdout);
            }
            return 1;
        }
        if (!parse_flag(option, options) && parse_one(option, optarg, rank, options) != 0) {
            return -EINVAL;
        }
    }
    if (optind < argc) {
        return complain(rank, "argument", argv[optind], "options only (nbcbench -h)");
    }
    return check_together(options, ranks, rank);
}
