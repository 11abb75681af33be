#include "fabric/read/synth_spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int parse_number(const char **at, unsigned long high, unsigned *value)
{
    char *end;
    unsigned long number;

    if (!isdigit((unsigned char)**at)) {
        return -EINVAL;
    }
    errno = 0;
    number = strtoul(*at, &end, 10);
    if (errno != 0 || number > high) {
        return -ERANGE;
    }
    *value = (unsigned)number;
    *at = end;
    return 0;
}

/* A list of count numbers of 1..4096 into list[1..], then the separator or the end. */
static int parse_list(const char **at, unsigned count, unsigned *list)
{
    for (unsigned i = 1; i <= count; i++) {
        if ((i > 1 && *(*at)++ != ',') || parse_number(at, 4096, &list[i]) != 0 || list[i] == 0) {
            return -EINVAL;
        }
    }
    return 0;
}

static int parse_tree(const char *at, struct synth_spec *spec, struct ibshift_error *err)
{
    if (parse_number(&at, SYNTH_LEVELS_MAX, &spec->h) != 0 || spec->h == 0 || *at++ != ';' ||
        parse_list(&at, spec->h, spec->m) != 0 || *at++ != ';' ||
        parse_list(&at, spec->h, spec->w) != 0 || *at++ != ';' ||
        parse_list(&at, spec->h, spec->p) != 0 || *at != '\0') {
        return ibshift_fail(err, -EINVAL,
                            "'%s': wants LEVELS;m,..;w,..;p,.. with 1 to %d levels and as many m, "
                            "w and p, as in pgft:3;18,9,36;1,9,18;1,2,1",
                            spec->text, SYNTH_LEVELS_MAX);
    }
    if (spec->w[1] != 1 || spec->p[1] != 1) {
        return ibshift_fail(err, -EINVAL, "'%s': hosts have one cable here: w1 = p1 = 1",
                            spec->text);
    }
    return 0;
}

static int parse_kary(const char *at, struct synth_spec *spec, struct ibshift_error *err)
{
    unsigned k;

    if (parse_number(&at, 127, &k) != 0 || k < 1 || *at++ != ',' ||
        parse_number(&at, SYNTH_LEVELS_MAX, &spec->h) != 0 || spec->h == 0 || *at != '\0') {
        return ibshift_fail(err, -EINVAL, "'%s': wants K,N: K to 127, N to %d, as in kary:4,3",
                            spec->text, SYNTH_LEVELS_MAX);
    }
    for (unsigned l = 1; l <= spec->h; l++) {
        spec->m[l] = k;
        spec->w[l] = l == 1 ? 1 : k;
        spec->p[l] = 1;
    }
    return 0;
}

static int parse_torus(const char *at, struct synth_spec *spec, struct ibshift_error *err)
{
    spec->torus = true;
    do {
        if (spec->dims == SYNTH_DIMS_MAX || parse_number(&at, 4096, &spec->dim[spec->dims]) != 0 ||
            spec->dim[spec->dims] == 0) {
            return ibshift_fail(err, -EINVAL, "'%s': wants AxB[xC...],HOSTS as in torus:8x8,4",
                                spec->text);
        }
        spec->dims++;
    } while (*at == 'x' && at++);
    spec->hosts_per_switch = 1;
    if (*at == ',') {
        at++;
        if (parse_number(&at, 200, &spec->hosts_per_switch) != 0) {
            return ibshift_fail(err, -EINVAL, "'%s': 0 to 200 hosts a switch", spec->text);
        }
    }
    return *at == '\0' ? 0 : ibshift_fail(err, -EINVAL, "'%s': what is '%s'?", spec->text, at);
}

static int parse_seeded(const char *at, unsigned *count, unsigned *percent, uint64_t *seed)
{
    unsigned number, seed_number = 1;

    if (parse_number(&at, 1000000, &number) != 0) {
        return -EINVAL;
    }
    if (*at == '%' && percent != NULL && number <= 100) {
        at++;
        *percent = number;
    } else {
        *count = number;
    }
    if (*at == ':') {
        at++;
        if (parse_number(&at, UINT32_MAX, &seed_number) != 0) {
            return -EINVAL;
        }
    }
    *seed = seed_number;
    return *at == '\0' ? 0 : -EINVAL;
}

static int parse_drop(char *names, struct synth_spec *spec)
{
    char *rest = NULL;

    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (spec->drops == SYNTH_DROPS_MAX) {
            return -E2BIG;
        }
        spec->drop[spec->drops++] = name;
    }
    return 0;
}

static int parse_option(char *option, struct synth_spec *spec, struct ibshift_error *err)
{
    const char *lmc = option + 4;
    int rc = -EINVAL;

    if (strcmp(option, "minhop") == 0) {
        spec->minhop = true;
        rc = 0;
    } else if (strncmp(option, "cut=", 4) == 0) {
        rc = parse_seeded(option + 4, &spec->cut, &spec->cut_percent, &spec->cut_seed);
    } else if (strncmp(option, "hosts=", 6) == 0) {
        rc = parse_seeded(option + 6, &spec->keep_hosts, NULL, &spec->keep_seed);
        rc = rc == 0 && spec->keep_hosts == 0 ? -EINVAL : rc;
    } else if (strncmp(option, "lmc=", 4) == 0) {
        rc = parse_number(&lmc, IBSHIFT_LMC_MAX, &spec->lmc) == 0 && *lmc == '\0' ? 0 : -EINVAL;
    } else if (strncmp(option, "drop=", 5) == 0) {
        rc = parse_drop(option + 5, spec);
    }
    return rc == 0 ? 0
                   : ibshift_fail(err, -EINVAL,
                                  "'/%s': wants /cut=N[%%][:SEED], /drop=NAME,.., "
                                  "/hosts=N[:SEED], /lmc=0..7 or /minhop",
                                  option);
}

static int parse_kind(char *kind, struct synth_spec *spec, struct ibshift_error *err)
{
    if (strncmp(kind, "kary:", 5) == 0) {
        return parse_kary(kind + 5, spec, err);
    }
    if (strncmp(kind, "torus:", 6) == 0) {
        return parse_torus(kind + 6, spec, err);
    }
    spec->qft = strncmp(kind, "qft:", 4) == 0;
    if (spec->qft || strncmp(kind, "pgft:", 5) == 0) {
        return parse_tree(strchr(kind, ':') + 1, spec, err);
    }
    return ibshift_fail(err, -EINVAL, "'%s': not kary:, pgft:, qft: or torus:", kind);
}

int synth_parse(const char *text, struct synth_spec *spec, struct ibshift_error *err)
{
    char *option;
    int rc;

    memset(spec, 0, sizeof(*spec));
    if (strlen(text) >= sizeof(spec->text)) {
        return ibshift_fail(err, -E2BIG, "a synthetic fabric of more than %zu characters",
                            sizeof(spec->text) - 1);
    }
    strcpy(spec->text, text);
    option = strchr(spec->text, '/');
    if (option != NULL) {
        *option++ = '\0';
    }
    rc = parse_kind(spec->text, spec, err);
    while (rc == 0 && option != NULL) {
        char *next = strchr(option, '/');

        if (next != NULL) {
            *next++ = '\0';
        }
        rc = parse_option(option, spec, err);
        option = next;
    }
    return rc;
}
