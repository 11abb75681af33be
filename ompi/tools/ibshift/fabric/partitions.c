#include "fabric/partitions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEFAULT_KEY = 0x7fff, KEY_BITS = 0x7fff, FULL_BIT = 0x8000, NAME_SIZE = 64 };

/* By which a member is named. ALL_SWITCHES and the like are no hosts. */
enum member_by { BY_GUID, BY_LID, BY_ALL, BY_MANAGER };

struct fabric_member {
    uint64_t who;
    uint32_t key;
    uint8_t by;
    bool is_full;
};

static const char table_word[] = "PKeyTableRecord dump:";

static int add(struct fabric_partitions *p, enum member_by by, uint64_t who, uint32_t key,
               bool is_full, struct ibshift_error *err)
{
    if ((p->count & (p->count - 1)) == 0) { /* grows where it is a power of two */
        struct fabric_member *moved =
            realloc(p->members, (p->count == 0 ? 1 : 2 * (size_t)p->count) * sizeof(*moved));

        if (moved == NULL) {
            return ibshift_fail(err, -ENOMEM, "no memory");
        }
        p->members = moved;
    }
    p->members[p->count++] =
        (struct fabric_member){.who = who, .key = key, .by = (uint8_t)by, .is_full = is_full};
    return 0;
}

/*
 * OpenSM's partitions.conf: NAME[=KEY][,FLAG]... : PORT[=full|limited|both],... ;
 *
 * As its osm_prtn.c and osm_prtn_config.c have it: the default partition begins with all ports as limited members
 * and the subnet manager's as a full one; the last mention of a port in a partition counts; a name that is a number is the key; one
 * without a key is the partition that had the name before, or gets the first key that is free by then.
 */

struct partition_name {
    char name[NAME_SIZE];
    uint32_t key;
};

struct rules {
    struct fabric_partitions *p;
    struct ibshift_lines *lines;
    struct ibshift_error *err;
    struct partition_name *names; /* grows where name_count is a power of two */
    uint32_t name_count, key, last_free;
    bool is_full;    /* of members of whom nothing is said */
    bool is_defined; /* behind the colon */
    bool is_taken[KEY_BITS + 1];
};

static bool is_word(const char *text, const char *word)
{
    return strcasecmp(text, word) == 0;
}

/* The first to take a key gives the partition its name. */
static int take_key(struct rules *r, const char *name, uint32_t key)
{
    r->key = key;
    if (r->is_taken[key]) {
        return 0;
    }
    if ((r->name_count & (r->name_count - 1)) == 0) {
        struct partition_name *moved = realloc(
            r->names, (r->name_count == 0 ? 1 : 2 * (size_t)r->name_count) * sizeof(*moved));

        if (moved == NULL) {
            return ibshift_fail(r->err, -ENOMEM, "no memory");
        }
        r->names = moved;
    }
    snprintf(r->names[r->name_count].name, NAME_SIZE, "%s", name);
    r->names[r->name_count++].key = key;
    r->is_taken[key] = true;
    return 0;
}

static int take_name(struct rules *r, const char *name)
{
    for (uint32_t i = 0; i < r->name_count; i++) {
        if (strcmp(r->names[i].name, name) == 0) {
            r->key = r->names[i].key;
            return 0;
        }
    }
    do {
        r->last_free++;
    } while (r->last_free < DEFAULT_KEY && r->is_taken[r->last_free]);
    return r->last_free < DEFAULT_KEY
               ? take_key(r, name, r->last_free)
               : ibshift_lines_fail(r->lines, -E2BIG, "no key is left for partition '%s'", name);
}

static int define(struct rules *r, const char *name, const char *value, bool is_first)
{
    char *end;
    unsigned long key;

    if (!is_first) {
        if (is_word(name, "defmember") && value != NULL) {
            r->is_full = !is_word(value, "limited");
        }
        return 0; /* or a flag of multicast */
    }
    r->is_full = false;
    if (value == NULL && name[0] >= '0' && name[0] <= '9') {
        value = name;
    }
    if (value == NULL) {
        return take_name(r, name);
    }
    key = strtoul(value, &end, 0);
    if (end == value || *end != '\0') {
        return ibshift_lines_fail(r->lines, -EINVAL, "partition '%s' has the key '%s'", name,
                                  value);
    }
    return (key & KEY_BITS) == 0 ? take_name(r, name) : take_key(r, name, key & KEY_BITS);
}

static int add_named(struct rules *r, const char *name, const char *value)
{
    bool is_full = value == NULL ? r->is_full : is_word(value, "full") || is_word(value, "both");
    char *end;
    uint64_t guid;

    if (is_word(name, "ALL") || is_word(name, "ALL_CAS")) {
        return add(r->p, BY_ALL, 0, r->key, is_full, r->err);
    }
    if (is_word(name, "SELF")) {
        return add(r->p, BY_MANAGER, 0, r->key, is_full, r->err);
    }
    if (strncasecmp(name, "ALL_", 4) == 0) {
        return 0;
    }
    errno = 0;
    guid = strtoull(name, &end, 0);
    if (end != name && *end == '\0' && errno == 0) {
        return add(r->p, BY_GUID, guid, r->key, is_full, r->err);
    }
    if (value != NULL && !is_full && !is_word(value, "limited")) {
        return 0; /* mgid=, rate=, mtu=, ...: of multicast */
    }
    return ibshift_lines_fail(r->lines, -EINVAL, "'%s' is neither a port's GUID nor ALL or SELF",
                              name);
}

/* One of a list, with blanks around; empty ones are of no meaning. */
static int take_word(struct rules *r, const char *at, size_t length, bool is_first)
{
    char text[NAME_SIZE], *value;

    while (length > 0 && strchr(" \t", *at) != NULL) {
        at++;
        length--;
    }
    while (length > 0 && strchr(" \t", at[length - 1]) != NULL) {
        length--;
    }
    if (length >= sizeof(text)) {
        return ibshift_lines_fail(r->lines, -E2BIG, "a word of more than %d characters",
                                  NAME_SIZE - 1);
    }
    memcpy(text, at, length);
    text[length] = '\0';
    value = strchr(text, '=');
    if (value != NULL) {
        for (char *end = value; end > text && strchr(" \t", end[-1]) != NULL; end--) {
            end[-1] = '\0';
        }
        *value++ = '\0';
        value += strspn(value, " \t");
    }
    if (!r->is_defined) {
        return define(r, text, value, is_first);
    }
    return text[0] == '\0' ? 0 : add_named(r, text, value);
}

/* The colons of a multicast address do not end a definition. */
static int read_rule_line(struct rules *r, bool *is_first)
{
    char *at = r->lines->text;
    int rc = 0;

    at[strcspn(at, "#")] = '\0';
    while (rc == 0 && at[strspn(at, " \t")] != '\0') {
        size_t length = strcspn(at, r->is_defined ? ",;" : ",:;");
        char end = at[length];

        rc = take_word(r, at, length, *is_first);
        *is_first = end == ';';
        if (end == ':') {
            r->is_defined = true;
        } else if (end == ';') {
            r->is_defined = false;
        }
        at += length + (end != '\0');
    }
    return rc;
}

static int read_all(struct rules *r)
{
    bool is_first = true;
    int rc = take_key(r, "Default", DEFAULT_KEY);

    rc = rc == 0 ? add(r->p, BY_ALL, 0, DEFAULT_KEY, false, r->err) : rc;
    rc = rc == 0 ? add(r->p, BY_MANAGER, 0, DEFAULT_KEY, true, r->err) : rc;
    while (rc == 0 && (rc = ibshift_lines_next(r->lines)) > 0) {
        rc = read_rule_line(r, &is_first);
    }
    return rc == 0 && !is_first
               ? ibshift_lines_fail(r->lines, -EINVAL, "the last partition has no ';'")
               : rc;
}

static int read_rules(struct fabric_partitions *p, struct ibshift_lines *lines,
                      struct ibshift_error *err)
{
    struct rules *r = calloc(1, sizeof(*r));
    int rc;

    if (r == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory");
    }
    r->p = p;
    r->lines = lines;
    r->err = err;
    p->has_rules = true;
    rc = read_all(r);
    free(r->names);
    free(r);
    return rc;
}

/* ---- saquery's tables: "LID....2", "Port....1", then keys, of which bit 15 says full ---- */

static int read_tables(struct fabric_partitions *p, struct ibshift_lines *lines,
                       struct ibshift_error *err)
{
    uint64_t lid = 0, key;
    int rc;

    while ((rc = ibshift_lines_next(lines)) > 0) {
        const char *at = ibshift_scan_blanks(lines->text);

        if (strncmp(at, table_word, strlen(table_word)) == 0) {
            lid = 0;
        } else if (strncmp(at, "LID.", 4) == 0) {
            at += 3 + strspn(at + 3, ".");
            if (ibshift_scan_decimal(at, &lid) == NULL || lid == 0 || lid > IBSHIFT_LID_MAX) {
                return ibshift_lines_fail(lines, -EINVAL, "wants a LID, not '%s'", at);
            }
        }
        while (strncmp(at, "0x", 2) == 0) {
            at = ibshift_scan_hex(at, &key);
            if (at == NULL || key > (FULL_BIT | KEY_BITS) || lid == 0) {
                return ibshift_lines_fail(lines, -EINVAL, "wants keys of 16 bits after a LID");
            }
            rc = (key & KEY_BITS) == 0
                     ? 0
                     : add(p, BY_LID, lid, key & KEY_BITS, (key & FULL_BIT) != 0, err);
            if (rc != 0) {
                return rc;
            }
            at = ibshift_scan_blanks(at);
        }
    }
    return rc;
}

/* "= 0x", with any blanks */
static bool has_key(const char *head, size_t size)
{
    const char *end = head + size, *at = head;

    while ((at = memchr(at, '=', (size_t)(end - at))) != NULL) {
        do {
            at++;
        } while (at < end && (*at == ' ' || *at == '\t'));
        if (end - at >= 2 && memcmp(at, "0x", 2) == 0) {
            return true;
        }
    }
    return false;
}

bool fabric_partitions_are(const char *head, size_t size)
{
    return size >= strlen(table_word) &&
           (memcmp(head, table_word, strlen(table_word)) == 0 ||
            (memchr(head, ';', size) != NULL && memchr(head, ':', size) != NULL &&
             (has_key(head, size) || memmem(head, size, "ALL", 3) != NULL ||
              memmem(head, size, "SELF", 4) != NULL ||
              memmem(head, size, "defmember", 9) != NULL)));
}

int fabric_partitions_read(struct fabric_partitions *p, struct ibshift_lines *lines,
                           struct ibshift_error *err)
{
    size_t size;
    const char *head = ibshift_lines_head(lines, &size);
    bool are_tables =
        size >= strlen(table_word) && memcmp(head, table_word, strlen(table_word)) == 0;

    p->are_there = true;
    return are_tables ? read_tables(p, lines, err) : read_rules(p, lines, err);
}

void fabric_partitions_free(struct fabric_partitions *p)
{
    free(p->members);
    *p = (struct fabric_partitions){.members = NULL};
}

/* ---- who may talk ---- */

/* A host's membership; a host's lie together, by key, and hosts of equal ones are one class. */
struct entry {
    uint32_t host, key, rank; /* rank: of two for one key the higher counts */
    bool is_full;
};

struct class
{
    const struct entry *entries;
    uint32_t count, hosts, first, second; /* first, second: two of the hosts */
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return x->host != y->host   ? (x->host < y->host ? -1 : 1)
           : x->key != y->key   ? (x->key < y->key ? -1 : 1)
           : x->rank != y->rank ? (x->rank > y->rank ? -1 : 1)
                                : 0;
}

static int compare_classes(const void *a, const void *b)
{
    const struct class *x = a, *y = b;

    if (x->count != y->count) {
        return x->count < y->count ? -1 : 1;
    }
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->entries[i].key != y->entries[i].key) {
            return x->entries[i].key < y->entries[i].key ? -1 : 1;
        }
        if (x->entries[i].is_full != y->entries[i].is_full) {
            return x->entries[i].is_full ? -1 : 1;
        }
    }
    return x->first < y->first ? -1 : x->first > y->first; /* the first of equals leads */
}

static uint32_t host_of(const struct ibshift_fabric *f, const struct fabric_facts *facts,
                        const struct fabric_member *m)
{
    uint64_t guid = m->by == BY_MANAGER ? facts->sm_guid : m->who;
    uint64_t lid = m->by == BY_MANAGER ? facts->sm_lid : m->by == BY_LID ? m->who : 0;
    uint32_t node =
        guid == 0 || m->by == BY_LID ? IBSHIFT_NO_NODE : ibshift_fabric_find_guid(f, guid);

    if (node != IBSHIFT_NO_NODE) {
        for (unsigned port = 1; port <= f->nodes[node].port_count; port++) {
            const struct ibshift_port *at = &f->ports[ibshift_node_port(f, node, port)];

            if (at->guid == guid && at->lid != 0) {
                lid = at->lid;
            }
        }
    }
    return lid == 0 || lid > IBSHIFT_LID_MAX ? IBSHIFT_NO_HOST
                                             : ibshift_fabric_host_of_lid(f, (unsigned)lid);
}

static uint32_t fill(const struct fabric_partitions *p, const struct ibshift_fabric *f,
                     const struct fabric_facts *facts, struct entry *entries)
{
    uint32_t count = 0, kept = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        const struct fabric_member *m = &p->members[i];
        uint32_t host = m->by == BY_ALL ? 0 : host_of(f, facts, m);
        uint32_t end = m->by == BY_ALL ? f->host_count : host == IBSHIFT_NO_HOST ? host : host + 1;

        for (; host < end; host++) {
            entries[count++] = (struct entry){.host = host,
                                              .key = m->key,
                                              .rank = p->has_rules ? i : m->is_full,
                                              .is_full = m->is_full};
        }
    }
    qsort(entries, count, sizeof(*entries), compare_entries);
    for (uint32_t i = 0; i < count; i++) { /* of two for one key the one that counts comes first */
        if (i == 0 || entries[i].host != entries[i - 1].host ||
            entries[i].key != entries[i - 1].key) {
            entries[kept++] = entries[i];
        }
    }
    return kept;
}

/* Hosts with equal memberships, each once; the number of classes. */
static uint32_t gather(const struct entry *entries, uint32_t count, struct class *classes)
{
    uint32_t hosts = 0, kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || entries[i].host != entries[i - 1].host) {
            hosts++;
            classes[hosts - 1] = (struct class){.entries = entries + i,
                                                .hosts = 1,
                                                .first = entries[i].host,
                                                .second = entries[i].host};
        }
        classes[hosts - 1].count++;
    }
    qsort(classes, hosts, sizeof(*classes), compare_classes);
    for (uint32_t i = 0; i < hosts; i++) {
        struct class probe = classes[i];

        probe.first = kept == 0 ? 0 : classes[kept - 1].first;
        if (kept != 0 && compare_classes(&classes[kept - 1], &probe) == 0) {
            classes[kept - 1].hosts++;
            classes[kept - 1].second = classes[i].first;
        } else {
            classes[kept++] = classes[i];
        }
    }
    return kept;
}

static bool may_talk(const struct class *a, const struct class *b)
{
    for (uint32_t i = 0, k = 0; i < a->count && k < b->count;) {
        if (a->entries[i].key == b->entries[k].key) {
            if (a->entries[i].is_full || b->entries[k].is_full) {
                return true;
            }
            i++;
            k++;
        } else if (a->entries[i].key < b->entries[k].key) {
            i++;
        } else {
            k++;
        }
    }
    return false;
}

static void count_pairs(const struct class *classes, uint32_t count, struct fabric_apart *apart)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = i; k < count; k++) {
            const struct class *a = &classes[i], *b = &classes[k];
            uint64_t pairs =
                i == k ? (uint64_t)a->hosts * (a->hosts - 1) / 2 : (uint64_t)a->hosts * b->hosts;

            if (pairs == 0 || may_talk(a, b)) {
                continue;
            }
            if (apart->pairs == 0) {
                apart->first = a->first;
                apart->with = i == k ? a->second : b->first;
            }
            apart->pairs += pairs;
        }
    }
}

int fabric_partitions_check(const struct fabric_partitions *p, const struct ibshift_fabric *f,
                            const struct fabric_facts *facts, struct fabric_apart *apart,
                            struct ibshift_error *err)
{
    size_t room = 1;
    struct entry *entries;
    struct class *classes;
    uint32_t count = 0, said = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        room += p->members[i].by == BY_ALL ? f->host_count : 1;
    }
    entries = malloc(room * sizeof(*entries));
    classes = malloc(((size_t)f->host_count + 1) * sizeof(*classes));
    *apart = (struct fabric_apart){.pairs = 0};
    if (entries != NULL && classes != NULL) {
        count = fill(p, f, facts, entries);
        for (uint32_t i = 0; i < count; i++) {
            said += i == 0 || entries[i].host != entries[i - 1].host;
        }
        count_pairs(classes, gather(entries, count, classes), apart);
        apart->unsaid = f->host_count - said;
    }
    free(entries);
    free(classes);
    return entries == NULL || classes == NULL ? ibshift_fail(err, -ENOMEM, "no memory") : 0;
}
