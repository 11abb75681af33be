#include "choose/param.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choose/text.h"

#define FILE_LIMIT 65536
#define LINE_LIMIT 200
#define MOST       1e9 /* us, bytes */
#define F_MAX      1024

enum kind { KIND_TIME, KIND_PER_BYTE, KIND_BYTES, KIND_COUNT };

struct key {
    const char *name;
    enum kind kind;
    size_t offset;
    size_t twin; /* a second field that the key sets too, or the same */
};

#define AT(field) offsetof(struct ibshift_model, field)

static const struct key keys[] = {
    {"L", KIND_TIME, AT(latency), AT(latency)},
    {"o_s", KIND_TIME, AT(send_max), AT(send_min)},
    {"o_s_max", KIND_TIME, AT(send_max), AT(send_max)},
    {"o_s_min", KIND_TIME, AT(send_min), AT(send_min)},
    {"o_r", KIND_TIME, AT(recv_max), AT(recv_min)},
    {"o_r_max", KIND_TIME, AT(recv_max), AT(recv_max)},
    {"o_r_min", KIND_TIME, AT(recv_min), AT(recv_min)},
    {"g", KIND_TIME, AT(gap), AT(gap)},
    {"G", KIND_PER_BYTE, AT(gap_byte), AT(gap_byte)},
    {"f", KIND_COUNT, AT(free_messages), AT(free_messages)},
    {"O", KIND_PER_BYTE, AT(send_byte), AT(send_byte)},
    {"E", KIND_PER_BYTE, AT(eager_byte), AT(eager_byte)},
    {"S", KIND_BYTES, AT(at_once), AT(at_once)},
    {"R", KIND_TIME, AT(granted), AT(granted)},
    {"copy", KIND_PER_BYTE, AT(copy_byte), AT(copy_byte)},
    {"reduce", KIND_PER_BYTE, AT(reduce_byte), AT(reduce_byte)},
    {"w", KIND_TIME, AT(wake), AT(wake)},
};

#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))

struct unit {
    const char *name;
    enum kind kind;
    double scale; /* to microseconds, to microseconds per byte, to bytes */
    int is_rate;  /* the scale is that of the inverse */
};

static const struct unit units[] = {
    {"ns", KIND_TIME, 1e-3, 0},
    {"us", KIND_TIME, 1, 0},
    {"ms", KIND_TIME, 1e3, 0},
    {"s", KIND_TIME, 1e6, 0},
    {"ps/B", KIND_PER_BYTE, 1e-6, 0},
    {"ns/B", KIND_PER_BYTE, 1e-3, 0},
    {"us/B", KIND_PER_BYTE, 1, 0},
    {"MB/s", KIND_PER_BYTE, 1, 1},
    {"GB/s", KIND_PER_BYTE, 1e-3, 1},
    {"MiB/s", KIND_PER_BYTE, 1 / 1.048576, 1},
    {"Gbit/s", KIND_PER_BYTE, 8e-3, 1},
    {"GiB/s", KIND_PER_BYTE, 1e-3 / 1.073741824, 1},
    {"B", KIND_BYTES, 1, 0},
    {"KiB", KIND_BYTES, 1024, 0},
    {"MiB", KIND_BYTES, 1048576, 0},
};

static const char *const unit_names[] = {
    [KIND_TIME] = "ns, us, ms, s",
    [KIND_PER_BYTE] = "ps/B, ns/B, us/B, MB/s, MiB/s, GB/s, GiB/s, Gbit/s",
    [KIND_BYTES] = "B, KiB, MiB",
    [KIND_COUNT] = "no unit",
};

const struct ibshift_model ibshift_model_typical = {
    .latency = 1.0,
    .send_max = 0.4,
    .send_min = 0.2,
    .recv_max = 0.4,
    .recv_min = 0.2,
    .gap = 0.2,
    .gap_byte = 1e-4, /* 10 GB/s */
    .copy_byte = 1e-4,
    .reduce_byte = 2e-4,
    .free_messages = 4,
};

const struct ibshift_model ibshift_model_software = {
    .latency = 0.8,
    .send_max = 0.7,
    .send_min = 0.7,
    .recv_max = 0.7,
    .recv_min = 0.7,
    .send_byte = 1.8e-4, /* 5.6 GB/s */
    .eager_byte = 7.5e-5,
    .wake = 2.7,
    .copy_byte = 4e-5,
    .reduce_byte = 7e-5,
    .free_messages = 1,
};

const struct ibshift_model ibshift_model_node = {
    .latency = 0.1,
    .send_max = 0.1,
    .send_min = 0.1,
    .recv_max = 0.1,
    .recv_min = 0.1,
    .gap = 0.1,
    .send_byte = 3.4e-5, /* 29 GB/s: both sides copy at once */
    .wake = 2.2,
    .copy_byte = 2.5e-5,
    .reduce_byte = 2e-5,
    .at_once = 65536,
    .granted = 6,
    .free_messages = 64,
};

const struct ibshift_model ibshift_model_example = {
    .latency = 5.0,
    .send_max = 2.0,
    .send_min = 0.5,
    .recv_max = 1.5,
    .recv_min = 0.5,
    .gap = 3.0,
    .gap_byte = 1e-3,
    .free_messages = 2,
};

enum section { FABRIC, NODE, MADE, SECTIONS };

static const char *const sections[SECTIONS] = {
    [FABRIC] = "fabric", [NODE] = "node", [MADE] = "made"};

#define MADE_AT(field) offsetof(struct ibshift_made, field)

static const struct {
    const char *name;
    size_t offset;
} made_keys[] = {
    {"device", MADE_AT(device)},     {"speed", MADE_AT(speed)},     {"ompi", MADE_AT(ompi)},
    {"firmware", MADE_AT(firmware)}, {"ibshift", MADE_AT(ibshift)}, {"host", MADE_AT(host)},
    {"date", MADE_AT(date)},
};

#define MADE_COUNT (sizeof(made_keys) / sizeof(made_keys[0]))

struct parser {
    const char *name;
    int line;
    enum section section;
    int begun_on[SECTIONS]; /* line of the heading, or of the first key without any; 0: not */
    int set_on[KEY_COUNT];  /* line, 0 when not set; of this section */
    struct ibshift_model model;
    struct ibshift_costs costs;
    locale_t numbers; /* with a decimal point, whatever the program has set */
    char *error;
};

__attribute__((format(printf, 2, 3))) static int fail(struct parser *p, const char *format, ...)
{
    va_list args;
    int used = p->line > 0
                   ? snprintf(p->error, IBSHIFT_MODEL_ERROR_SIZE, "%.100s:%d: ", p->name, p->line)
                   : snprintf(p->error, IBSHIFT_MODEL_ERROR_SIZE, "%.100s: ", p->name);

    va_start(args, format);
    vsnprintf(p->error + used, IBSHIFT_MODEL_ERROR_SIZE - (size_t)used, format, args);
    va_end(args);
    return -EINVAL;
}

static const struct unit *find_unit(enum kind kind, const char *name)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (units[i].kind == kind && strcmp(units[i].name, name) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

static int set_count(struct parser *p, const struct key *key, double number, const char *unit)
{
    if (unit[0] != '\0') {
        return fail(p, "%s is a count and has no unit (found '%.20s')", key->name, unit);
    }
    if (number < 1 || number > F_MAX || number != floor(number)) {
        return fail(p, "%s must be a whole number from 1 to %d", key->name, F_MAX);
    }
    p->model.free_messages = (int)number;
    return 0;
}

static int set_number(struct parser *p, const struct key *key, double number, const char *name)
{
    const struct unit *unit = find_unit(key->kind, name);
    double value;

    if (unit == NULL) {
        return fail(p, "%s needs a unit of: %s (found '%.20s')", key->name, unit_names[key->kind],
                    name);
    }
    if (number < 0) {
        return fail(p, "%s is negative: it must be 0 or more", key->name);
    }
    if (unit->is_rate && number == 0) {
        return fail(p, "%s is a rate of 0: give a positive rate, or 0 us/B for no cost", key->name);
    }
    value = unit->is_rate ? unit->scale / number : number * unit->scale;
    if (!(value <= MOST)) {
        return fail(p, "%s is more than %s", key->name,
                    key->kind == KIND_BYTES ? "a gigabyte" : "1000 s");
    }
    memcpy((char *)&p->model + key->offset, &value, sizeof(value));
    memcpy((char *)&p->model + key->twin, &value, sizeof(value));
    return 0;
}

static int fail_unknown(struct parser *p, const char *name)
{
    char known[128] = "";
    size_t length = 0;

    for (size_t i = 0; i < KEY_COUNT && length < sizeof(known); i++) {
        length += (size_t)snprintf(known + length, sizeof(known) - length, "%s%s",
                                   i > 0 ? ", " : "", keys[i].name);
    }
    return fail(p, "unknown key '%.20s'; the keys are %s", name, known);
}

static int set_made(struct parser *p, const char *name, const char *text)
{
    size_t i = 0, length = strlen(text);

    while (i < MADE_COUNT && strcmp(made_keys[i].name, name) != 0) {
        i++;
    }
    if (i == MADE_COUNT) {
        return fail(p,
                    "unknown key '%.20s' under [made]; the keys are device, speed, ompi, "
                    "firmware, ibshift, host, date",
                    name);
    }
    if (length >= IBSHIFT_MADE_TEXT) {
        return fail(p, "%s is longer than %d characters", name, IBSHIFT_MADE_TEXT - 1);
    }
    memcpy((char *)&p->costs.made + made_keys[i].offset, text, length + 1);
    return 0;
}

static int set_key(struct parser *p, const char *name, const char *text)
{
    size_t i = 0;
    char *unit;
    double number;

    if (p->section == MADE) {
        return set_made(p, name, text);
    }
    p->begun_on[p->section] = p->begun_on[p->section] > 0 ? p->begun_on[p->section] : p->line;
    while (i < KEY_COUNT && strcmp(keys[i].name, name) != 0) {
        i++;
    }
    if (i == KEY_COUNT) {
        return fail_unknown(p, name);
    }
    if (p->set_on[i] != 0) {
        return fail(p, "%s was set on line %d already", name, p->set_on[i]);
    }
    p->set_on[i] = p->line;
    number = strtod_l(text, &unit, p->numbers);
    if (unit == text || !isfinite(number)) {
        return fail(p, "%s needs a number (found '%.20s')", name, text);
    }
    unit += strspn(unit, " \t");
    return keys[i].kind == KIND_COUNT ? set_count(p, &keys[i], number, unit)
                                      : set_number(p, &keys[i], number, unit);
}

static void trim_end(char *text)
{
    size_t length = strlen(text);

    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL) {
        text[--length] = '\0';
    }
}

static int is_set(const struct parser *p, const char *name)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strcmp(keys[i].name, name) == 0) {
            return p->set_on[i] != 0;
        }
    }
    return 0;
}

static int check_whole(struct parser *p)
{
    const struct ibshift_model *m = &p->model;

    if (!is_set(p, "L") || !is_set(p, "g")) {
        return fail(p, "%s is missing", is_set(p, "L") ? "g" : "L");
    }
    if (!is_set(p, "o_s") && !(is_set(p, "o_s_max") && is_set(p, "o_s_min"))) {
        return fail(p, "o_s is missing (or o_s_max and o_s_min)");
    }
    if (!is_set(p, "o_r") && !(is_set(p, "o_r_max") && is_set(p, "o_r_min"))) {
        return fail(p, "o_r is missing (or o_r_max and o_r_min)");
    }
    if (m->send_min > m->send_max || m->recv_min > m->recv_max) {
        return fail(p, "%s_min is larger than %s_max", m->send_min > m->send_max ? "o_s" : "o_r",
                    m->send_min > m->send_max ? "o_s" : "o_r");
    }
    return 0;
}

/* What was read since the last heading is whole, and its model kept. */
static int end_section(struct parser *p)
{
    int rc, line = p->line;

    if (p->section == MADE || p->begun_on[p->section] == 0) {
        return 0;
    }
    p->line = p->begun_on[NODE] > 0 || p->begun_on[MADE] > 0 ? p->begun_on[p->section] : 0;
    rc = check_whole(p);
    p->line = line;
    *(p->section == NODE ? &p->costs.near : &p->costs.far) = p->model;
    *(p->section == NODE ? &p->costs.has_near : &p->costs.has_far) = true;
    return rc;
}

static int begin_section(struct parser *p, const char *text)
{
    int rc = end_section(p);

    for (int i = 0; rc == 0 && i < SECTIONS; i++) {
        size_t length = strlen(sections[i]);

        if (strncmp(text + 1, sections[i], length) == 0 && strcmp(text + 1 + length, "]") == 0) {
            if (p->begun_on[i] > 0) {
                return fail(p, "[%s] was begun on line %d already", sections[i], p->begun_on[i]);
            }
            p->section = (enum section)i;
            p->begun_on[i] = p->line;
            p->model = (struct ibshift_model){.free_messages = 1};
            memset(p->set_on, 0, sizeof(p->set_on));
            return 0;
        }
    }
    return rc != 0 ? rc
                   : fail(p, "unknown heading '%.20s'; the headings are [fabric], [node], [made]",
                          text);
}

static int parse_line(struct parser *p, const char *start, size_t length)
{
    char line[LINE_LIMIT + 1];
    char *name, *value;

    if (length > LINE_LIMIT) {
        return fail(p, "line is longer than %d characters", LINE_LIMIT);
    }
    if (memchr(start, '\0', length) != NULL) {
        return fail(p, "line has a zero byte: this is not a text file");
    }
    memcpy(line, start, length);
    line[length] = '\0';
    line[strcspn(line, "#")] = '\0';
    trim_end(line);
    name = line + strspn(line, " \t");
    if (*name == '\0') {
        return 0;
    }
    if (*name == '[') {
        return begin_section(p, name);
    }
    value = strchr(name, '=');
    if (value == NULL) {
        return fail(p, "expected 'key = number unit' (found '%.40s')", name);
    }
    *value++ = '\0';
    trim_end(name);
    return set_key(p, name, value + strspn(value, " \t"));
}

static int parse_text(struct parser *p, const char *text, size_t length)
{
    const char *end = text + length;
    int rc;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline != NULL ? newline : end;

        p->line++;
        rc = parse_line(p, text, (size_t)(stop - text));
        if (rc != 0) {
            return rc;
        }
        text = newline != NULL ? newline + 1 : end;
    }
    rc = end_section(p);
    p->line = 0;
    return rc != 0 || p->costs.has_far || p->costs.has_near ? rc : fail(p, "L is missing");
}

int ibshift_costs_parse(const char *text, size_t length, const char *name,
                        struct ibshift_costs *costs, char *error)
{
    struct parser p = {.name = name, .error = error, .model = {.free_messages = 1}};
    int rc;

    p.numbers = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (p.numbers == (locale_t)0) {
        fail(&p, "out of memory");
        return -ENOMEM;
    }
    rc = parse_text(&p, text, length);
    freelocale(p.numbers);
    if (rc == 0) {
        *costs = p.costs;
    }
    return rc;
}

int ibshift_costs_read(const char *path, struct ibshift_costs *costs, char *error)
{
    char *text;
    size_t length;
    int rc = ibshift_text_read(path, FILE_LIMIT, "parameter file", &text, &length, error,
                               IBSHIFT_MODEL_ERROR_SIZE);

    if (rc == 0) {
        rc = ibshift_costs_parse(text, length, path, costs, error);
        free(text);
    }
    return rc;
}

int ibshift_model_read(const char *path, struct ibshift_model *model, char *error)
{
    struct ibshift_costs costs;
    int rc = ibshift_costs_read(path, &costs, error);

    if (rc == 0) {
        *model = costs.has_far ? costs.far : costs.near;
    }
    return rc;
}

/* With as few digits as parse to the same number. */
static void write_number(double value, char *text, size_t size)
{
    snprintf(text, size, "%.15g", value);
    if (strtod(text, NULL) != value) {
        snprintf(text, size, "%.17g", value);
    }
}

int ibshift_model_format(const struct ibshift_model *m, char *text, size_t size)
{
    static const char *const unit_of[] = {
        [KIND_TIME] = " us", [KIND_PER_BYTE] = " us/B", [KIND_BYTES] = " B", [KIND_COUNT] = ""};
    size_t length = 0;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        double value = m->free_messages;
        char number[32];

        if (keys[i].kind != KIND_COUNT) {
            memcpy(&value, (const char *)m + keys[i].offset, sizeof(value));
        }
        if (keys[i].offset == keys[i].twin) { /* another key sets two, each of which has its own */
            write_number(value, number, sizeof(number));
            length += (size_t)snprintf(length < size ? text + length : NULL,
                                       length < size ? size - length : 0, "%s = %s%s\n",
                                       keys[i].name, number, unit_of[keys[i].kind]);
        }
    }
    return (int)length;
}

static int add_section(const struct ibshift_model *m, enum section section, char *text, size_t size,
                       int length)
{
    size_t at = (size_t)length < size ? (size_t)length : size;
    int heading = snprintf(size > at ? text + at : NULL, size - at, "[%s]\n", sections[section]);

    at = (size_t)(length + heading) < size ? (size_t)(length + heading) : size;
    return heading + ibshift_model_format(m, size > at ? text + at : NULL, size - at);
}

int ibshift_costs_format(const struct ibshift_costs *costs, char *text, size_t size)
{
    int length = snprintf(text, size, "[made]\n");

    for (size_t i = 0; i < MADE_COUNT; i++) {
        const char *value = (const char *)&costs->made + made_keys[i].offset;
        size_t at = (size_t)length < size ? (size_t)length : size;

        length += value[0] == '\0' ? 0
                                   : snprintf(size > at ? text + at : NULL, size - at, "%s = %s\n",
                                              made_keys[i].name, value);
    }
    length += costs->has_far ? add_section(&costs->far, FABRIC, text, size, length) : 0;
    length += costs->has_near ? add_section(&costs->near, NODE, text, size, length) : 0;
    return length;
}

struct ibshift_model ibshift_model_loggp(const struct ibshift_model *model)
{
    struct ibshift_model out = *model;

    out.send_min = out.send_max;
    out.recv_min = out.recv_max;
    out.free_messages = 1;
    return out;
}

struct ibshift_model ibshift_model_logfp(const struct ibshift_model *model)
{
    struct ibshift_model out = *model;

    out.gap_byte = 0;
    out.copy_byte = 0;
    out.reduce_byte = 0;
    out.send_byte = 0;
    out.eager_byte = 0;
    return out;
}
