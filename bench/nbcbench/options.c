#include "nbcbench.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: mpirun -np P nbcbench [OPTION...]\n"
    "  -t, --tests LIST      collectives, comma-separated, or all (default all): MPI_Alltoall,...\n"
    "  -p, --ranks A-B       numbers of ranks, doubling from A to B (default: all there are)\n"
    "  -s, --sizes LIST      bytes of a block: A, or A-B, doubling from A to B,... (default\n"
    "                        1-65536)\n"
    "  -r, --repetitions N   samples of which the median is the result (default 50)\n"
    "  -w, --warmups N       operations before the first sample (default 5)\n"
    "  -n, --nonblocking     the nonblocking operations as well, with computation\n"
    "  -c, --test-bytes N    MPI_Test once for so many bytes of the block (default 2048)\n"
    "  -k, --counter FILE    growth of the number in FILE by one operation, as column 'counted'\n"
    "                        (/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)\n"
    "  -v, --verify          look at the data after each size\n"
    "  -o, --csv FILE        comma-separated values into FILE (- for stdout)\n"
    "  -l, --label TEXT      first column of the CSV\n"
    "  -h, --help            this text\n"
    "  -V, --version\n";

static const struct option long_options[] = {
    {"tests", required_argument, NULL, 't'},      {"ranks", required_argument, NULL, 'p'},
    {"sizes", required_argument, NULL, 's'},      {"repetitions", required_argument, NULL, 'r'},
    {"warmups", required_argument, NULL, 'w'},    {"nonblocking", no_argument, NULL, 'n'},
    {"test-bytes", required_argument, NULL, 'c'}, {"counter", required_argument, NULL, 'k'},
    {"verify", no_argument, NULL, 'v'},           {"csv", required_argument, NULL, 'o'},
    {"label", required_argument, NULL, 'l'},      {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},          {NULL, 0, NULL, 0},
};

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

static int parse_one(int option, const char *value, int rank, struct options *o)
{
    long a = 0, b = 0;

    switch (option) {
    case 't':
        o->tests = value;
        return check_tests(value, rank);
    case 'p':
        if (parse_range(value, 1, &a, &b) != 0) {
            return complain(rank, "-p", value, "A-B, ranks, A at least 1");
        }
        o->ranks_min = (int)a;
        o->ranks_max = (int)b;
        return 0;
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
    case 'n':
        o->nonblocking = true;
        return 0;
    case 'v':
        o->verify = true;
        return 0;
    case 'k':
        o->counter = value;
        return counter_check(value, rank);
    case 'o':
        o->csv = value;
        return 0;
    default:
        o->label = value;
        return 0;
    }
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
                                .label = ""};
    (void)parse_sizes("1-65536", options);
    opterr = rank == 0;
    while ((option = getopt_long(argc, argv, "t:p:s:r:w:nc:k:vo:l:hV", long_options, NULL)) != -1) {
        if (option == 'h' || option == '?') {
            if (rank == 0) {
                fputs(usage, option == 'h' ? stdout : stderr);
            }
            return option == 'h' ? 1 : -EINVAL;
        }
        if (option == 'V') {
            if (rank == 0) {
                puts("ibshift " PACKAGE_VERSION);
            }
            return 1;
        }
        if (parse_one(option, optarg, rank, options) != 0) {
            return -EINVAL;
        }
    }
    if (optind < argc) {
        return complain(rank, "argument", argv[optind], "options only (nbcbench -h)");
    }
    if (options->ranks_max > ranks) {
        return complain(rank, "-p", "", "no more ranks than mpirun started");
    }
    return 0;
}
