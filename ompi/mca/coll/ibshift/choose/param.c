#include "choose/param.h"

#include <assert.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
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
    .send_max = 0.9,
    .send_min = 0.9,
    .recv_max = 0.9,
    .recv_min = 0.9,
    .send_byte = 7.3e-5, /* 14 GB/s */
    .eager_byte = 4.8e-5,
    .wake = 3.5,
    .granted = 2.1,
    .copy_byte = 2.7e-5,
    .reduce_byte = 3.8e-5,
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

/* In the order of the struct, which is an array of texts. */
static const char *const made_keys[] = {"device",  "speed", "ompi", "firmware",
                                        "ibshift", "host",  "date"};

#define MADE_COUNT (sizeof(made_keys) / sizeof(made_keys[0]))
static_assert(sizeof(struct ibshift_made) == MADE_COUNT * IBSHIFT_MADE_TEXT, "a key for each text");

struct parser {
    struct ibshift_text text;
    enum section section;
    int begun_on[SECTIONS]; /* line of the heading, or of the first key without any; 0: not */
    int set_on[KEY_COUNT];  /* line, 0 when not set; of this section */
    struct ibshift_model model;
    struct ibshift_costs costs;
    locale_t numbers; /* with a decimal point, whatever the program has set */
};

static const struct unit *find_unit(enum kind kind, const char *name)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (units[i].kind == kind && strcmp(units[i].name, name) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

static void set_count(struct parser *p, const struct key *key, double number, const char *unit)
{
    if (unit[0] != '\0') {
        ibshift_text_fail(&p->text, "%s is a count and has no unit (found '%.20s')", key->name,
                          unit);
    } else if (number < 1 || number > F_MAX || number != floor(number)) {
        ibshift_text_fail(&p->text, "%s must be a whole number from 1 to %d", key->name, F_MAX);
    } else {
        p->model.free_messages = (int)number;
    }
}

static void set_number(struct parser *p, const struct key *key, double number, const char *name)
{
    const struct unit *unit = find_unit(key->kind, name);
    double value;

    if (unit == NULL) {
        ibshift_text_fail(&p->text, "%s needs a unit of: %s (found '%.20s')", key->name,
                          unit_names[key->kind], name);
        return;
    }
    if (number < 0) {
        ibshift_text_fail(&p->text, "%s is negative: it must be 0 or more", key->name);
    } else if (unit->is_rate && number == 0) {
        ibshift_text_fail(
            &p->text, "%s is a rate of 0: give a positive rate, or 0 us/B for no cost", key->name);
    }
    value = unit->is_rate ? unit->scale / number : number * unit->scale;
    if (!(value <= MOST)) {
        ibshift_text_fail(&p->text, "%s is more than %s", key->name,
                          key->kind == KIND_BYTES ? "a gigabyte" : "1000 s");
    }
    memcpy((char *)&p->model + key->offset, &value, sizeof(value));
    memcpy((char *)&p->model + key->twin, &value, sizeof(value));
}

static void set_made(struct parser *p, const char *name, const char *text)
{
    size_t i = 0;

    while (i < MADE_COUNT && strcmp(made_keys[i], name) != 0) {
        i++;
    }
    if (i == MADE_COUNT) {
        ibshift_text_fail(&p->text,
                          "unknown key '%.20s' under [made]; the keys are device, speed, ompi, "
                          "firmware, ibshift, host, date",
                          name);
    } else if (strlen(text) >= IBSHIFT_MADE_TEXT) {
        ibshift_text_fail(&p->text, "%s is longer than %d characters", name, IBSHIFT_MADE_TEXT - 1);
    } else {
        strcpy((char *)&p->costs.made + i * IBSHIFT_MADE_TEXT, text);
    }
}

static size_t find_key(const char *name)
{
    size_t i = 0;

    while (i < KEY_COUNT && strcmp(keys[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void set_key(struct parser *p, const char *name, const char *text)
{
    size_t i = find_key(name);
    char *unit;
    double number;

    p->begun_on[p->section] = p->begun_on[p->section] > 0 ? p->begun_on[p->section] : p->text.line;
    if (i == KEY_COUNT) {
        ibshift_text_fail(
            &p->text,
            "unknown key '%.20s'; the keys are L, o_s, o_s_max, o_s_min, o_r, o_r_max, "
            "o_r_min, g, G, f, O, E, S, R, copy, reduce, w",
            name);
        return;
    }
    if (p->set_on[i] != 0) {
        ibshift_text_fail(&p->text, "%s was set on line %d already", name, p->set_on[i]);
        return;
    }
    p->set_on[i] = p->text.line;
    number = strtod_l(text, &unit, p->numbers);
    if (unit == text || !isfinite(number)) {
        ibshift_text_fail(&p->text, "%s needs a number (found '%.20s')", name, text);
        return;
    }
    unit += strspn(unit, " \t");
    (keys[i].kind == KIND_COUNT ? set_count : set_number)(p, &keys[i], number, unit);
}

static void check_overhead(struct parser *p, const char *name, double max, double min)
{
    char one[8], other[8];

    snprintf(one, sizeof(one), "%s_max", name);
    snprintf(other, sizeof(other), "%s_min", name);
    if (p->set_on[find_key(name)] == 0 &&
        (p->set_on[find_key(one)] == 0 || p->set_on[find_key(other)] == 0)) {
        ibshift_text_fail(&p->text, "%s is missing (or %s and %s)", name, one, other);
    } else if (min > max) {
        ibshift_text_fail(&p->text, "%s is larger than %s", other, one);
    }
}

/* What was read since the last heading is whole, and its model kept. */
static void end_section(struct parser *p)
{
    const struct ibshift_model *m = &p->model;
    int line = p->text.line;

    if (p->section == MADE || p->begun_on[p->section] == 0) {
        return;
    }
    p->text.line = p->begun_on[NODE] > 0 || p->begun_on[MADE] > 0 ? p->begun_on[p->section] : 0;
    if (p->set_on[find_key("L")] == 0 || p->set_on[find_key("g")] == 0) {
        ibshift_text_fail(&p->text, "%s is missing", p->set_on[find_key("L")] != 0 ? "g" : "L");
    }
    check_overhead(p, "o_s", m->send_max, m->send_min);
    check_overhead(p, "o_r", m->recv_max, m->recv_min);
    p->text.line = line;
    *(p->section == NODE ? &p->costs.near : &p->costs.far) = p->model;
    *(p->section == NODE ? &p->costs.has_near : &p->costs.has_far) = true;
}

static void begin_section(struct parser *p, const char *text)
{
    char name[16];
    int i = 0;

    end_section(p);
    do {
        snprintf(name, sizeof(name), "[%s]", sections[i]);
    } while (strcmp(text, name) != 0 && ++i < SECTIONS);
    if (i == SECTIONS) {
        ibshift_text_fail(
            &p->text, "unknown heading '%.20s'; the headings are [fabric], [node], [made]", text);
        return;
    }
    if (p->begun_on[i] > 0) {
        ibshift_text_fail(&p->text, "[%s] was begun on line %d already", sections[i],
                          p->begun_on[i]);
    }
    p->section = (enum section)i;
    p->begun_on[i] = p->text.line;
    p->model = (struct ibshift_model){.free_messages = 1};
    memset(p->set_on, 0, sizeof(p->set_on));
}

static char *trim(char *text)
{
    size_t length = strlen(text);

    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL) {
        text[--length] = '\0';
    }
    return text + strspn(text, " \t");
}

static void parse_line(struct parser *p, size_t length)
{
    char line[LINE_LIMIT + 1];
    char *name, *value;

    if (length > LINE_LIMIT) {
        ibshift_text_fail(&p->text, "line is longer than %d characters", LINE_LIMIT);
        return;
    }
    memcpy(line, p->text.at, length);
    line[length] = '\0';
    if (strlen(line) < length) {
        ibshift_text_fail(&p->text, "line has a zero byte: this is not a text file");
    }
    line[strcspn(line, "#")] = '\0';
    name = trim(line);
    if (*name == '[') {
        begin_section(p, name);
        return;
    }
    value = strchr(name, '=');
    if (*name != '\0' && value == NULL) {
        ibshift_text_fail(&p->text, "expected 'key = number unit' (found '%.40s')", name);
    } else if (*name != '\0') {
        *value++ = '\0';
        (p->section == MADE ? set_made : set_key)(p, trim(name), trim(value));
    }
}

int ibshift_costs_parse(const char *text, size_t length, const char *name,
                        struct ibshift_costs *costs, char *error)
{
    struct parser p = {.text = {.name = name, .at = text, .end = text + length, .error = error},
                       .model = {.free_messages = 1}};

    p.numbers = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (p.numbers == (locale_t)0) {
        ibshift_text_fail(&p.text, "out of memory");
        return -ENOMEM;
    }
    while (p.text.at < p.text.end) {
        size_t room = (size_t)(p.text.end - p.text.at);
        const char *newline = memchr(p.text.at, '\n', room);
        size_t line = newline != NULL ? (size_t)(newline - p.text.at) : room;

        p.text.line++;
        parse_line(&p, line);
        p.text.at += p.text.rc == 0 ? line + (newline != NULL) : 0;
    }
    end_section(&p);
    p.text.line = 0;
    if (!p.costs.has_far && !p.costs.has_near) {
        ibshift_text_fail(&p.text, "L is missing");
    }
    freelocale(p.numbers);
    if (p.text.rc == 0) {
        *costs = p.costs;
    }
    return p.text.rc;
}

int ibshift_costs_read(const char *path, struct ibshift_costs *costs, char *error)
{
    char *text;
    size_t length;
    int rc = ibshift_text_read(path, FILE_LIMIT, "parameter file", &text, &length, error);

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
static void write_number(FILE *out, double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.15g", value);
    fprintf(out, "%.*g", strtod(text, NULL) == value ? 15 : 17, value);
}

static void write_model(FILE *out, const struct ibshift_model *m)
{
    static const char *const unit_of[] = {
        [KIND_TIME] = " us", [KIND_PER_BYTE] = " us/B", [KIND_BYTES] = " B", [KIND_COUNT] = ""};

    for (size_t i = 0; i < KEY_COUNT; i++) {
        double value = m->free_messages;

        if (keys[i].kind != KIND_COUNT) {
            memcpy(&value, (const char *)m + keys[i].offset, sizeof(value));
        }
        if (keys[i].offset == keys[i].twin) { /* another key sets two, each of which has its own */
            fprintf(out, "%s = ", keys[i].name);
            write_number(out, value);
            fprintf(out, "%s\n", unit_of[keys[i].kind]);
        }
    }
}

/* One of the two. */
static int format(const struct ibshift_model *model, const struct ibshift_costs *costs, char *text,
                  size_t size)
{
    char *memory = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&memory, &length);

    if (size > 0) {
        text[0] = '\0';
    }
    if (out == NULL) {
        return 0;
    }
    if (model != NULL) {
        write_model(out, model);
    } else {
        fputs("[made]\n", out);
        for (size_t i = 0; i < MADE_COUNT; i++) {
            const char *value = (const char *)&costs->made + i * IBSHIFT_MADE_TEXT;

            if (value[0] != '\0') {
                fprintf(out, "%s = %s\n", made_keys[i], value);
            }
        }
        if (costs->has_far) {
            fputs("[fabric]\n", out);
            write_model(out, &costs->far);
        }
        if (costs->has_near) {
            fputs("[node]\n", out);
            write_model(out, &costs->near);
        }
    }
    if (fclose(out) == 0) {
        snprintf(text, size, "%s", memory);
    }
    free(memory);
    return (int)length;
}

int ibshift_model_format(const struct ibshift_model *model, char *text, size_t size)
{
    return format(model, NULL, text, size);
}

int ibshift_costs_format(const struct ibshift_costs *costs, char *text, size_t size)
{
    return format(NULL, costs, text, size);
}
