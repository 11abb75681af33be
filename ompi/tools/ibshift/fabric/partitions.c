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
    uint32_t key; /* above KEY_BITS: of a partition without a number */
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

/* ---- OpenSM's partitions.conf: NAME[=KEY][,FLAG]... : PORT[=full|limited|both],... ; ---- */

struct rules {
    struct fabric_partitions *p;
    struct ibshift_lines *lines;
    struct ibshift_error *err;
    uint32_t key, unnumbered;
    bool is_full;     /* of members of whom nothing is said */
    bool is_defined;  /* behind the colon */
    bool has_default; /* a rule for the default partition was there */
};

static bool is_word(const char *text, const char *word)
{
    return strcasecmp(text, word) == 0;
}

static int define(struct rules *r, const char *name, const char *value, bool is_first)
{
    char *end;
    unsigned long key;

    if (!is_first) {
        r->is_full |= is_word(name, "defmember") && value != NULL && !is_word(value, "limited");
        return 0; /* or a flag of multicast */
    }
    r->is_full = false;
    if (value == NULL) {
        r->key = is_word(name, "default") ? DEFAULT_KEY : KEY_BITS + ++r->unnumbered;
        return 0;
    }
    key = strtoul(value, &end, 0);
    if (end == value || *end != '\0') {
        return ibshift_lines_fail(r->lines, r->err, -EINVAL, "partition '%s' has the key '%s'",
                                  name, value);
    }
    r->key = key & KEY_BITS;
    return 0;
}

static int add_named(struct rules *r, const char *name, const char *value)
{
    bool is_full = value == NULL ? r->is_full : is_word(value, "full") || is_word(value, "both");
    char *end;
    uint64_t guid;

    r->has_default |= r->key == DEFAULT_KEY;
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
    return ibshift_lines_fail(r->lines, r->err, -EINVAL,
                              "'%s' is neither a port's GUID nor ALL or SELF", name);
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
        return ibshift_lines_fail(r->lines, r->err, -E2BIG, "a word of more than %d characters",
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
            r->has_default |= r->key == DEFAULT_KEY;
        } else if (end == ';') {
            r->is_defined = false;
        }
        at += length + (end != '\0');
    }
    return rc;
}

static int read_rules(struct fabric_partitions *p, struct ibshift_lines *lines,
                      struct ibshift_error *err)
{
    struct rules r = {.p = p, .lines = lines, .err = err};
    bool is_first = true;
    int rc;

    p->has_rules = true;
    while ((rc = ibshift_lines_next(lines, err)) > 0) {
        rc = read_rule_line(&r, &is_first);
        if (rc != 0) {
            return rc;
        }
    }
    if (rc == 0 && !is_first) {
        return ibshift_lines_fail(lines, err, -EINVAL, "the last partition has no ';'");
    }
    if (rc == 0 && !r.has_default) { /* as OpenSM does */
        rc = add(p, BY_ALL, 0, DEFAULT_KEY, false, err);
        rc = rc == 0 ? add(p, BY_MANAGER, 0, DEFAULT_KEY, true, err) : rc;
    }
    return rc;
}

/* ---- saquery's tables: "LID....2", "Port....1", then keys, of which bit 15 says full ---- */

static int read_tables(struct fabric_partitions *p, struct ibshift_lines *lines,
                       struct ibshift_error *err)
{
    uint64_t lid = 0, key;
    int rc;

    while ((rc = ibshift_lines_next(lines, err)) > 0) {
        const char *at = ibshift_scan_blanks(lines->text);

        if (strncmp(at, table_word, strlen(table_word)) == 0) {
            lid = 0;
        } else if (strncmp(at, "LID.", 4) == 0) {
            at += 3 + strspn(at + 3, ".");
            if (ibshift_scan_decimal(at, &lid) == NULL || lid == 0 || lid > IBSHIFT_LID_MAX) {
                return ibshift_lines_fail(lines, err, -EINVAL, "wants a LID, not '%s'", at);
            }
        }
        while (strncmp(at, "0x", 2) == 0) {
            at = ibshift_scan_hex(at, &key);
            if (at == NULL || key > (FULL_BIT | KEY_BITS) || lid == 0) {
                return ibshift_lines_fail(lines, err, -EINVAL,
                                          "wants keys of 16 bits behind a LID");
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

bool fabric_partitions_are(const char *head, size_t size)
{
    return size >= strlen(table_word) &&
           (memcmp(head, table_word, strlen(table_word)) == 0 ||
            (memchr(head, ';', size) != NULL && memchr(head, ':', size) != NULL &&
             (memmem(head, size, "=0x", 3) != NULL || memmem(head, size, "ALL", 3) != NULL)));
}

int fabric_partitions_read(struct fabric_partitions *p, struct ibshift_lines *lines,
                           struct ibshift_error *err)
{
    size_t size;
    const char *head = ibshift_lines_head(lines, &size);
    bool are_tables =
        size >= strlen(table_word) && memcmp(head, table_word, strlen(table_word)) == 0;

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
    uint32_t host, key;
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

    return x->host != y->host ? (x->host < y->host ? -1 : 1)
           : x->key != y->key ? (x->key < y->key ? -1 : 1)
                              : (int)y->is_full - (int)x->is_full;
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
            entries[count++] = (struct entry){.host = host, .key = m->key, .is_full = m->is_full};
        }
    }
    qsort(entries, count, sizeof(*entries), compare_entries);
    for (uint32_t i = 0; i < count; i++) { /* of two for one key the full one comes first */
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

/* Hosts of whom no rule is are in no partition. */
static void add_excluded(const struct entry *entries, uint32_t count, uint32_t hosts,
                         struct fabric_apart *apart)
{
    uint64_t none = apart->unsaid;
    uint32_t at = 0, host = 0;

    apart->unsaid = 0;
    if (none == 0 || hosts < 2) {
        return;
    }
    while (at < count && entries[at].host <= host) { /* the first that is not there */
        host += entries[at].host == host && (at + 1 == count || entries[at + 1].host != host);
        at++;
    }
    if (apart->pairs == 0) {
        apart->first = host;
        apart->with = host == 0 ? 1 : 0;
    }
    apart->pairs += none * (hosts - none) + none * (none - 1) / 2;
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
        if (p->has_rules) {
            add_excluded(entries, count, f->host_count, apart);
        }
    }
    free(entries);
    free(classes);
    return entries == NULL || classes == NULL ? ibshift_fail(err, -ENOMEM, "no memory")
           : said == 0 ? ibshift_fail(err, -ENODATA, "partitions: of no host of this fabric")
                       : 0;
}
