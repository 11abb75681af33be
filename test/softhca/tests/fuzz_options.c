/*
 * fuzz-options RUNS SEED: random arguments to softhca-run's parser. Whatever they are, it takes
 * them, prints its help, or refuses them with one line; what it takes is within its limits.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front/options.h"

enum { ARGS_MAX = 8, ARG_BYTES = 700 };

static uint64_t state;

static uint32_t pick(uint32_t n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33) % n;
}

static const char *const words[] = {
    "--hosts",
    "--per-host",
    "--hcas",
    "--ports",
    "--link",
    "--lmc",
    "--mtu",
    "--defer",
    "--adversarial",
    "--bounce",
    "--arm-waiting",
    "--seed",
    "--max-qp-wr",
    "--wire-timeline",
    "--wire-slice",
    "--burst",
    "--personality",
    "no-srq,docker-8M",
    "cx8-ddp,small-inline",
    "--inline-step",
    "vf-grh",
    "vf-grh,vf-grh",
    "--grh",
    "--pkeys",
    "7fff,8001/ffff",
    "7fff,,",
    "16KiB",
    "3000B",
    "--dir",
    "--memory",
    "--quiet",
    "--max-mr-size",
    "--max-locked",
    "--help",
    "--",
    "-",
    "-x",
    "",
    "ib",
    "eth",
    "0",
    "1",
    "2",
    "4096",
    "-1",
    "0x10",
    "1e3",
    "99999999999999999999",
    "18446744073709551615",
    "%s%n%d",
    "4096 ",
    "--fault",
    "--control",
    "--tell",
    "kill:rank=1",
    "loss:",
    "slow:us=1,",
    "--wire",
    "--fabric",
    "--lfts",
    "--scale",
    "--place",
    "random:1",
};

static const char *word(void)
{
    return words[pick(sizeof(words) / sizeof(words[0]))];
}

static void make_argument(char *arg)
{
    size_t n = 0;

    switch (pick(8)) {
    case 0:
        for (n = pick(ARG_BYTES); n > 0; n--) {
            arg[n - 1] = (char)(1 + pick(255));
        }
        break;
    case 1:
        snprintf(arg, ARG_BYTES, "%s=%s", word(), word());
        break;
    case 2:
        snprintf(arg, ARG_BYTES, "%s", word());
        if (*arg) {
            arg[pick((uint32_t)strlen(arg))] ^= (char)(1 << pick(7));
        }
        break;
    default:
        snprintf(arg, ARG_BYTES, "%s", word());
    }
}

static bool is_fine(int argc, char **argv, const char *said)
{
    struct options o;
    int command = -1;
    int err = options_parse(argc, argv, &o, &command);
    size_t length;
    const char *end;

    fflush(stderr);
    length = strlen(said);
    end = strchr(said, '\n');
    if (err == 0) {
        const struct shm_conf *c = &o.conf;

        return length == 0 && command > 0 && command < argc && c->hosts <= 8192 && c->hcas >= 1 &&
               c->hcas <= 8 && c->ports >= 1 && c->ports <= 2 && c->lmc <= 7;
    }
    return err > 0 ? length == 0 : err == -EINVAL && end && end == said + length - 1;
}

int main(int argc, char **argv)
{
    static char text[1 << 16], args[ARGS_MAX][ARG_BYTES];
    FILE *real = stderr;
    unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;

    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    printf("seed %llu\n", (unsigned long long)state);
    fflush(stdout);
    if (!freopen("/dev/null", "w", stdout)) {
        return 1;
    }
    for (unsigned long i = 0; i < runs; i++) {
        char *list[ARGS_MAX + 2] = {"softhca-run"};
        int n = 1 + (int)pick(ARGS_MAX);
        bool fine;

        for (int j = 0; j < n; j++) {
            memset(args[j], 0, ARG_BYTES);
            make_argument(args[j]);
            list[j + 1] = args[j];
        }
        memset(text, 0, sizeof(text));
        stderr = fmemopen(text, sizeof(text), "w");
        fine = stderr && is_fine(n + 1, list, text);
        fclose(stderr);
        stderr = real;
        if (!fine) {
            fprintf(stderr, "run %lu was answered with:\n%s\n", i, text);
            for (int j = 1; j <= n; j++) {
                fprintf(stderr, "argument %d: '%s'\n", j, list[j]);
            }
            return 1;
        }
    }
    return 0;
}
