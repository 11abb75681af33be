#include "job/params.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "choose/digest.h"
#include "choose/text.h"
#include "job/say.h"

enum { NAME = IBSHIFT_PARAM_NAME };

static void set_number(const struct ibshift_param *p, long long number)
{
    switch (p->type) {
    case IBSHIFT_PARAM_BOOL:
        *(bool *)p->value = number != 0;
        break;
    case IBSHIFT_PARAM_SIZE:
        *(size_t *)p->value = (size_t)number;
        break;
    default:
        *(int *)p->value = (int)number;
    }
}

static long long number_of(const struct ibshift_param *p)
{
    switch (p->type) {
    case IBSHIFT_PARAM_BOOL:
        return *(bool *)p->value;
    case IBSHIFT_PARAM_SIZE:
        return (long long)*(size_t *)p->value;
    default:
        return *(int *)p->value;
    }
}

void ibshift_param_set_initial(const struct ibshift_param *p)
{
    if (p->type == IBSHIFT_PARAM_STRING) {
        *(const char **)p->value = p->initial_text;
    } else {
        set_number(p, p->initial);
    }
}

const char *ibshift_param_text(const struct ibshift_param *p, bool initial,
                               char text[IBSHIFT_PARAM_NUMBER])
{
    long long number = p->type == IBSHIFT_PARAM_STRING || initial ? p->initial : number_of(p);

    if (p->type == IBSHIFT_PARAM_STRING) {
        return initial ? p->initial_text : *(const char **)p->value;
    }
    if (p->type == IBSHIFT_PARAM_CHOICE) {
        return p->choices[number];
    }
    snprintf(text, IBSHIFT_PARAM_NUMBER, "%lld", number);
    return text;
}

/* What follows coll_ibshift_ where people are told of a row. */
static const char *shown_name(const struct ibshift_param *p, char text[NAME])
{
    snprintf(text, NAME, p->is_expert ? "expert (%s)" : "%s", p->name);
    return text;
}

void ibshift_param_tell(const struct ibshift_param *p, const char *given)
{
    char accepted[512], name[NAME], initial[IBSHIFT_PARAM_NUMBER];
    size_t length = (size_t)snprintf(accepted, sizeof(accepted), "%lld to %lld", p->min, p->max);

    for (int i = 0; p->type == IBSHIFT_PARAM_CHOICE && p->choices[i] != NULL; i++) {
        length = i > 0 ? length : 0;
        length += (size_t)snprintf(accepted + length, sizeof(accepted) - length, "%s%s",
                                   i > 0 ? ", " : "", p->choices[i]);
    }
    ibshift_help_once_a_job("bad-value", shown_name(p, name), given, accepted,
                            ibshift_param_text(p, true, initial));
}

/* As Open MPI reads numbers: decimal or 0x, and k, m, g or t for a power of 1024. */
static bool read_number(const char *text, long long *number)
{
    static const char units[] = "kmgt";
    const char *unit;
    char *end;

    *number = strtoll(text, &end, 0);
    if (end == text || *end == '\0') {
        return end != text;
    }
    unit = strchr(units, *end | 0x20);
    if (unit == NULL || end[1] != '\0') {
        return false;
    }
    if (__builtin_mul_overflow(*number, 1LL << (10 * (unit - units + 1)), number)) {
        *number = LLONG_MAX; /* beyond all bounds */
    }
    return true;
}

/* Its place; -1: it is none. */
static int find_choice(const struct ibshift_param *p, const char *text)
{
    char *end;
    long number = strtol(text, &end, 0);
    bool is_place = end != text && *end == '\0';

    for (int i = 0; p->choices[i] != NULL; i++) {
        if (is_place ? number == i : strcmp(text, p->choices[i]) == 0) {
            return i;
        }
    }
    return -1;
}

bool ibshift_param_takes(const struct ibshift_param *p, const char *text)
{
    long long number;

    switch (p->type) {
    case IBSHIFT_PARAM_INT:
    case IBSHIFT_PARAM_SIZE:
        return read_number(text, &number);
    case IBSHIFT_PARAM_CHOICE:
        return find_choice(p, text) >= 0;
    default:
        return true;
    }
}

bool ibshift_param_is_bounded(const struct ibshift_param *p)
{
    return (p->type != IBSHIFT_PARAM_INT && p->type != IBSHIFT_PARAM_SIZE) ||
           (number_of(p) >= p->min && number_of(p) <= p->max);
}

static void add_expert(void *out, const struct ibshift_param *p)
{
    if (p->is_expert) {
        fprintf(out, ". %s (%lld): %s%s", p->name, p->initial, p->help,
                p->all_ranks ? " (the same on all ranks)" : "");
    }
}

char *ibshift_param_help(const struct ibshift_param *p)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) {
        return NULL;
    }
    fprintf(out, "%s%s", p->help, p->all_ranks ? ". The same on all ranks" : "");
    if (p->value == &ibshift_params.expert) {
        ibshift_params_visit(add_expert, out);
    }
    fclose(out);
    return text;
}

/* The row that a name means, or the most alike. */
struct look_up {
    struct ibshift_nearest nearest;
    bool among_experts;
    const struct ibshift_param *expert; /* NULL: it is none of these */
};

static void compare(void *context, const struct ibshift_param *p)
{
    struct look_up *look_up = context;

    if (p->is_expert || !look_up->among_experts) {
        ibshift_nearest_compare(&look_up->nearest, p->name);
        if (strcmp(look_up->nearest.name, p->name) == 0) {
            look_up->expert = p->is_expert ? p : NULL;
        }
    }
}

static void tell_unknown(const struct look_up *look_up)
{
    const struct ibshift_nearest *found = &look_up->nearest;
    char name[NAME + 16], shown[NAME], nearest[NAME + 16] = "none is like it";

    snprintf(name, sizeof(name), look_up->among_experts ? "expert (%s)" : "%s", found->word);
    if (3 * found->alike >= strlen(found->word)) {
        snprintf(nearest, sizeof(nearest), "coll_ibshift_%s",
                 look_up->expert != NULL ? shown_name(look_up->expert, shown) : found->name);
    }
    ibshift_help_once_a_job("unknown-parameter", name, nearest);
}

/* As Open MPI reads them for parameters of their own. */
static bool read_value(const struct ibshift_param *p, const char *text, long long *number)
{
    if (p->type == IBSHIFT_PARAM_BOOL &&
        (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        *number = text[0] == 't';
        return true;
    }
    return read_number(text, number);
}

/* One of name=value. */
static void read_setting(char *setting)
{
    struct look_up look_up = {.nearest.word = setting, .among_experts = true};
    const struct ibshift_param *p;
    char *value = strchr(setting, '=');
    long long number;

    if (value != NULL) {
        *value++ = '\0';
    }
    ibshift_params_visit(compare, &look_up);
    p = look_up.expert;
    if (!look_up.nearest.is_known) {
        tell_unknown(&look_up);
    } else if (value == NULL || !read_value(p, value, &number) || number < p->min ||
               number > p->max) {
        ibshift_param_tell(p, value == NULL ? "" : value);
    } else {
        set_number(p, number);
    }
}

struct setting {
    char *value;
    const char *name;
    bool is_known, is_taken, is_mpi;
};

static void take_setting(void *context, const struct ibshift_param *p)
{
    struct setting *setting = context;
    long long number;

    if (strcmp(p->name, setting->name) != 0) {
        return;
    }
    setting->is_known = setting->is_taken = true;
    setting->is_mpi = p->is_mpi;
    if (p->type == IBSHIFT_PARAM_STRING) {
        *(const char **)p->value = setting->value;
    } else if (p->type == IBSHIFT_PARAM_CHOICE && find_choice(p, setting->value) >= 0) {
        set_number(p, find_choice(p, setting->value));
    } else if (p->type != IBSHIFT_PARAM_CHOICE && read_value(p, setting->value, &number) &&
               (p->type == IBSHIFT_PARAM_BOOL || (number >= p->min && number <= p->max))) {
        set_number(p, number);
    } else {
        setting->is_taken = false;
    }
}

static void set_initial(void *context, const struct ibshift_param *p)
{
    ibshift_param_set_initial(p);
}

int ibshift_params_set(char *settings, char *why, size_t size)
{
    char *rest = settings, *text;

    ibshift_params_visit(set_initial, NULL);
    while ((text = strsep(&rest, ";")) != NULL) {
        char *value = strchr(text, '=');
        struct setting setting = {.name = text, .value = value == NULL ? NULL : value + 1};
        struct look_up look_up = {.nearest.word = text};

        if (*text == '\0') {
            continue;
        }
        if (value == NULL) {
            snprintf(why, size, "option \"%.100s\": it has no value: name=value", text);
            return -EINVAL;
        }
        *value = '\0';
        ibshift_params_visit(take_setting, &setting);
        if (!setting.is_known) {
            ibshift_params_visit(compare, &look_up);
            snprintf(why, size, "there is no option \"%.100s\"; the most alike is \"%s\"", text,
                     look_up.nearest.name);
            return -EINVAL;
        }
        if (setting.is_mpi) {
            snprintf(why, size,
                     "option %s is for Open MPI alone and does nothing here: leave it out", text);
            return -EINVAL;
        }
        if (!setting.is_taken) {
            snprintf(why, size,
                     "option %s does not take \"%.100s\": coll_ibshift(7) says what it takes", text,
                     setting.value);
            return -EINVAL;
        }
    }
    return 0;
}

void ibshift_params_read_expert(void)
{
    char *copy = strdup(ibshift_params.expert), *rest = copy, *setting;

    while (copy != NULL && NULL != (setting = strsep(&rest, ","))) {
        if (setting[0] != '\0') {
            read_setting(setting);
        }
    }
    free(copy);
}

struct agreed {
    uint64_t sum;
    char *text;
    size_t size, length;
};

static void add_agreed(void *context, const struct ibshift_param *p)
{
    struct agreed *agreed = context;
    size_t room = agreed->size - agreed->length;
    char numbers[2][IBSHIFT_PARAM_NUMBER];
    const char *value, *initial;
    int length;

    if (!p->all_ranks) {
        return;
    }
    value = ibshift_param_text(p, false, numbers[0]);
    initial = ibshift_param_text(p, true, numbers[1]);
    agreed->sum = ibshift_digest(agreed->sum, p->name, strlen(p->name) + 1);
    agreed->sum = ibshift_digest(agreed->sum, value, strlen(value) + 1);
    if (strcmp(value, initial) != 0) {
        length = snprintf(agreed->text + agreed->length, room, "%s=%s;", p->name, value);
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
static const char *value_in(const char *text, const char *name, const char *initial, int *length)
{
    size_t name_length = strlen(name);

    while (*text != '\0') {
        size_t entry = strcspn(text, ";");

        if (0 == strncmp(text, name, name_length) && '=' == text[name_length]) {
            *length = (int)(entry - name_length - 1);
            return text + name_length + 1;
        }
        text += entry + (';' == text[entry]);
    }
    *length = (int)strlen(initial);
    return initial;
}

static void find_difference(void *context, const struct ibshift_param *p)
{
    struct difference *difference = context;
    char name[NAME], number[IBSHIFT_PARAM_NUMBER];
    const char *theirs, *ours, *initial;
    int length, our_length;

    if (!p->all_ranks || difference->is_found) {
        return;
    }
    initial = ibshift_param_text(p, true, number);
    theirs = value_in(difference->theirs, p->name, initial, &length);
    ours = value_in(difference->ours, p->name, initial, &our_length);
    if (length != our_length || 0 != strncmp(theirs, ours, (size_t)length)) {
        snprintf(difference->words, difference->size, "its coll_ibshift_%s is %.*s, here %.*s",
                 shown_name(p, name), length, theirs, our_length, ours);
        difference->is_found = true;
    }
}

bool ibshift_params_differ(const char *theirs, const char *ours, char *words, size_t size)
{
    struct difference difference = {.theirs = theirs, .ours = ours, .words = words, .size = size};

    ibshift_params_visit(find_difference, &difference);
    return difference.is_found;
}

/* mpirun hands over whatever it was given; Open MPI is silent about names that nobody registers. */
static void check_names(const char *prefix)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        char word[NAME];
        struct look_up look_up = {.nearest.word = word};

        if (strncmp(*entry, prefix, strlen(prefix)) != 0) {
            continue;
        }
        snprintf(word, sizeof(word), "%s", *entry + strlen(prefix));
        word[strcspn(word, "=")] = '\0';
        ibshift_params_visit(compare, &look_up);
        if (!look_up.nearest.is_known || look_up.expert != NULL) {
            tell_unknown(&look_up);
        }
    }
}

static void check_collective(enum ibshift_collective collective)
{
    const struct ibshift_alg *forced = ibshift_params_wish(collective).alg;
    const char *name = ibshift_collective_name(collective);
    char which[256];

    if (forced == NULL) {
        return;
    }
    if (ibshift_params.radix[collective] > 0 && forced->radix_max == 0) {
        snprintf(which, sizeof(which),
                 "coll_ibshift_%s_radix = %d: coll_ibshift_%s_algorithm = %s has no radix", name,
                 ibshift_params.radix[collective], name, forced->name);
        ibshift_help_once_a_job("contradiction", which, "without it");
    }
    if (ibshift_params.segment[collective] > 0 && (forced->flags & IBSHIFT_ALG_SEGMENTS) == 0) {
        snprintf(which, sizeof(which),
                 "coll_ibshift_%s_segment = %zu: coll_ibshift_%s_algorithm = %s has no segments",
                 name, ibshift_params.segment[collective], name, forced->name);
        ibshift_help_once_a_job("contradiction", which, "without it");
    }
}

void ibshift_params_check(const char *prefix)
{
    if (prefix != NULL) {
        check_names(prefix);
    }
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        check_collective((enum ibshift_collective)i);
    }
}
