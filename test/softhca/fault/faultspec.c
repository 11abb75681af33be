#include "fault/faultspec.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum {
    RANK = 1,
    HOST = 2,
    TO = 4,
    HCA = 8,
    PORT = 16,
    IN = 32,
    FOR = 64,
    AFTER = 128,
    COUNT = 256
};
enum { P = 512, DELAY = 1024, BYTES = 2048, TYPE = 4096 };
enum { WHO = RANK | HOST, WHERE = HOST | HCA | PORT, WHEN = IN | FOR | AFTER | COUNT | P };

struct kind {
    const char *name;
    enum fault_kind kind;
    uint32_t keys, needs;
    const char *help;
};

static const struct kind kinds[] = {
    {"kill", FAULT_KILL, WHO | IN | AFTER, 0, "kills processes"},
    {"down", FAULT_DOWN, WHERE | IN | FOR, 0, "takes ports down: requests are lost"},
    {"up", FAULT_UP, WHERE | IN, 0, "takes ports up again"},
    {"event", FAULT_EVENT, WHERE | IN | TYPE, TYPE, "raises an asynchronous event of ports"},
    {"lose", FAULT_LOSE, WHO | TO | WHEN, 0, "loses requests: RC sends again"},
    {"rnr", FAULT_RNR, WHO | TO | WHEN, 0, "RC requests find no receive posted"},
    {"slow", FAULT_SLOW, WHO | WHEN | DELAY, DELAY, "delays each request"},
    {"refuse", FAULT_REFUSE, WHO | WHEN, 0, "refuses registrations with ENOMEM"},
    {"limit", FAULT_LIMIT, WHO | IN | FOR | BYTES, BYTES, "limits the bytes a process registers"},
    {"clear", FAULT_CLEAR, IN, 0, "ends all faults, takes all ports up"},
    {"show", FAULT_SHOW, 0, 0, "lists processes, ports and faults (--tell only)"},
};

enum value { VALUE_NUMBER, VALUE_TIME, VALUE_CHANCE, VALUE_BYTES, VALUE_EVENT };

#define AT(field) offsetof(struct shm_fault, field)

static const struct key {
    const char *name;
    uint32_t bit;
    enum value value;
    size_t offset, width;
    const char *help;
} keys[] = {
    {"rank", RANK, VALUE_NUMBER, AT(rank), 4, "the launcher's rank, else the order of arrival"},
    {"host", HOST, VALUE_NUMBER, AT(host), 4, "processes on this host, or requests that leave it"},
    {"to", TO, VALUE_NUMBER, AT(to), 4, "requests to this host"},
    {"hca", HCA, VALUE_NUMBER, AT(hca), 4, "HCA, from 0"},
    {"port", PORT, VALUE_NUMBER, AT(port), 4, "port, from 1"},
    {"in", IN, VALUE_TIME, AT(in_ns), 8, "starts after this time, such as 200ms"},
    {"for", FOR, VALUE_TIME, AT(for_ns), 8, "ends after this time"},
    {"after", AFTER, VALUE_NUMBER, AT(after), 8, "passes over the first N cases"},
    {"count", COUNT, VALUE_NUMBER, AT(count), 8, "hits at most N cases"},
    {"p", P, VALUE_CHANCE, AT(chance), 8, "hits with this probability, from 0 to 1 (seeded)"},
    {"delay", DELAY, VALUE_TIME, AT(delay_ns), 8, "time"},
    {"bytes", BYTES, VALUE_BYTES, AT(bytes), 8, "limit, such as 64M"},
    {"type", TYPE, VALUE_EVENT, AT(event), 4, "lid_change, port_err, ..."},
};

static const struct event {
    const char *name;
    uint32_t type;
} events[] = {
    {"port_active", IBV_EVENT_PORT_ACTIVE},
    {"port_err", IBV_EVENT_PORT_ERR},
    {"lid_change", IBV_EVENT_LID_CHANGE},
    {"pkey_change", IBV_EVENT_PKEY_CHANGE},
    {"sm_change", IBV_EVENT_SM_CHANGE},
    {"gid_change", IBV_EVENT_GID_CHANGE},
    {"client_reregister", IBV_EVENT_CLIENT_REREGISTER},
    {"device_fatal", IBV_EVENT_DEVICE_FATAL},
};

struct reader {
    const struct shm_conf *conf;
    struct shm_fault *f;
    char *why;
    size_t size;
};

int name_find(const void *rows, size_t count, size_t stride, const char *name, const char **hint)
{
    static char text[64];
    const char *names[NAMES_MAX], *nearest;

    for (size_t i = 0; i < count; i++) {
        names[i] = *(const char *const *)(const void *)((const char *)rows + i * stride);
        if (strcmp(names[i], name) == 0) {
            return (int)i;
        }
    }
    nearest = cli_nearest(name, names, count);
    snprintf(text, sizeof(text), nearest ? ", the nearest is '%s'" : "", nearest);
    *hint = text;
    return -1;
}

__attribute__((format(printf, 2, 3))) static int refuse(struct reader *r, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->why, r->size, format, args);
    va_end(args);
    return -EINVAL;
}

#define FIND(r, what, rows, name)                                                                  \
    find((r), (what), (rows), COUNT_OF(rows), sizeof((rows)[0]), (name))

/* The row of that name, or -EINVAL. */
static int find(struct reader *r, const char *what, const void *rows, size_t count, size_t stride,
                const char *name)
{
    const char *hint;
    int row = name_find(rows, count, stride, name, &hint);

    return row >= 0 ? row : refuse(r, "unknown %s '%s'%s", what, name, hint);
}

struct unit {
    const char *name;
    double factor;
};

/* A number with one of the units. */
static int read_scaled(const char *text, const struct unit *units, size_t n, uint64_t *value)
{
    char *end;
    double number = strtod(text, &end);

    if (!isdigit((unsigned char)text[0])) {
        return -EINVAL;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(end, units[i].name) == 0 && number * units[i].factor < 1e18) {
            *value = (uint64_t)(number * units[i].factor);
            return 0;
        }
    }
    return -EINVAL;
}

static int read_value(struct reader *r, const struct key *key, const char *text, uint64_t *value)
{
    static const struct unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    static const struct unit bytes[] = {
        {"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1ull << 40}};
    static const struct unit chance[] = {{"", FAULT_ALWAYS}};
    char *end;

    switch (key->value) {
    case VALUE_TIME:
        return read_scaled(text, times, COUNT_OF(times), value)
                   ? refuse(r, "%s wants a time such as 500us, 200ms or 2s, not '%s'", key->name,
                            text)
                   : 0;
    case VALUE_BYTES:
        return read_scaled(text, bytes, COUNT_OF(bytes), value)
                   ? refuse(r, "%s wants bytes such as 4096 or 64M, not '%s'", key->name, text)
                   : 0;
    case VALUE_CHANCE:
        return read_scaled(text, chance, 1, value) || *value > FAULT_ALWAYS
                   ? refuse(r, "%s wants a probability from 0 to 1, not '%s'", key->name, text)
                   : 0;
    case VALUE_EVENT: {
        int row = FIND(r, "event", events, text);

        *value = row < 0 ? 0 : events[row].type;
        return row < 0 ? row : 0;
    }
    default:
        *value = strtoul(text, &end, 10);
        return !isdigit((unsigned char)*text) || *end || *value > INT32_MAX
                   ? refuse(r, "%s wants a number, not '%s'", key->name, text)
                   : 0;
    }
}

static int check_number(struct reader *r, const struct key *key, uint64_t value)
{
    const struct shm_conf *c = r->conf;

    if ((key->bit & (HOST | TO)) && value >= c->hosts) {
        return refuse(r, "%s=%u: there are hosts 0 to %u", key->name, (uint32_t)value,
                      c->hosts - 1);
    }
    if ((key->bit & HCA) && value >= c->hcas) {
        return refuse(r, "hca=%u: there are HCAs 0 to %u", (uint32_t)value, c->hcas - 1);
    }
    if ((key->bit & PORT) && (value < 1 || value > c->ports)) {
        return refuse(r, "port=%u: there are ports 1 to %u", (uint32_t)value, c->ports);
    }
    return 0;
}

/* KEY=VALUE; notes the key's bit in `given`. */
static int read_pair(struct reader *r, const struct kind *kind, char *pair, uint32_t *given)
{
    uint64_t value = 0;
    char *text = strchr(pair, '=');
    int row;
    const struct key *key;
    int err;
    void *field;

    if (text) {
        *text++ = 0;
    }
    row = FIND(r, "key", keys, pair);
    if (row < 0) {
        return row;
    }
    key = &keys[row];
    if (!(kind->keys & key->bit)) {
        return refuse(r, "%s takes no %s", kind->name, key->name);
    }
    if (!text || !*text || (*given & key->bit)) {
        return refuse(r, "%s wants one %s=VALUE", kind->name, key->name);
    }
    err = read_value(r, key, text, &value);
    err = err ? err : check_number(r, key, value);
    if (err) {
        return err;
    }
    field = (char *)r->f + key->offset;
    if (key->width == 4) {
        *(uint32_t *)field = (uint32_t)value;
    } else {
        *(uint64_t *)field = value;
    }
    *given |= key->bit;
    return 0;
}

static int read_all(struct reader *r, char *text)
{
    char *pairs = strchr(text, ':'), *rest = NULL;
    uint32_t given = 0;
    int row;
    const struct kind *kind;
    int err;

    if (pairs) {
        *pairs++ = 0;
    }
    row = FIND(r, "fault", kinds, text);
    if (row < 0) {
        return row;
    }
    kind = &kinds[row];
    err = 0;
    for (char *p = pairs ? strtok_r(pairs, ",", &rest) : NULL; p && !err;
         p = strtok_r(NULL, ",", &rest)) {
        err = read_pair(r, kind, p, &given);
    }
    for (size_t i = 0; i < COUNT_OF(keys) && !err; i++) {
        if (kind->needs & ~given & keys[i].bit) {
            err = refuse(r, "%s wants %s=VALUE", kind->name, keys[i].name);
        }
    }
    if (!err && kind->kind == FAULT_KILL && (given & IN) && (given & AFTER)) {
        err = refuse(r, "kill takes in= or after=, not both");
    }
    if (kind->kind == FAULT_KILL) {
        r->f->count = 1;
    }
    atomic_store(&r->f->kind, kind->kind);
    return err;
}

int fault_parse(const char *text, const struct shm_conf *conf, struct shm_fault *f, char *why,
                size_t size)
{
    struct reader r = {conf, f, why, size};
    char copy[FAULT_TEXT];

    memset(f, 0, sizeof(*f));
    f->rank = f->host = f->to = f->hca = f->port = SHM_NONE;
    f->chance = FAULT_ALWAYS;
    f->count = UINT64_MAX;
    if (strlen(text) >= sizeof(copy)) {
        return refuse(&r, "longer than %zu characters", sizeof(copy) - 1);
    }
    snprintf(f->text, sizeof(f->text), "%s", text);
    snprintf(copy, sizeof(copy), "%s", text);
    return read_all(&r, copy);
}

void fault_print_help(void)
{
    printf("\nFaults: KIND[:KEY=VALUE,...]\n");
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        printf("  %-8s %s:", kinds[i].name, kinds[i].help);
        for (size_t k = 0; k < COUNT_OF(keys); k++) {
            if (kinds[i].keys & keys[k].bit) {
                printf(" %s%s", keys[k].name, kinds[i].needs & keys[k].bit ? "!" : "");
            }
        }
        printf("\n");
    }
    printf("Keys (! = required; without rank, host, to, hca or port: any)\n");
    for (size_t k = 0; k < COUNT_OF(keys); k++) {
        printf("  %-8s %s\n", keys[k].name, keys[k].help);
    }
}
