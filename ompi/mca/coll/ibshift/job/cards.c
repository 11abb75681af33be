#include "job/cards.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "choose/digest.h"
#include "net/verbs/blob.h"

enum { CARD_MAGIC = 0x4c42534a, ADDRESS_MAX = 4096, AGREED_MAX = 1024, TEXT = 512 };

/* Which process it is: its number, in its space of numbers; 0: not known. */
struct process {
    uint64_t space;
    uint64_t started; /* tells it from a later one of the same number */
    uint64_t pid;
};

struct card_head {
    uint32_t magic;
    uint32_t arch; /* how the process represents numbers */
    uint32_t has_endpoint;
    uint32_t length; /* of what follows: the card, or why there is none; then the agreed text */
    struct ibshift_card_values values;
    uint32_t processors, is_software; /* of struct ibshift_card_place; the card says the rest */
    uint32_t is_to_be_said;           /* why there is none */
    uint32_t is_crowded;              /* the host */
    struct process process;
    struct ibshift_node_card node; /* magic 0: none */
};

struct known {
    struct ibshift_card_place place;
    struct process process;
    enum { UNKNOWN, PRESENT, ABSENT } state;
};

static struct {
    pthread_mutex_t lock;             /* covers the next two */
    struct known *known;              /* by peer */
    uint32_t size;                    /* of known */
    struct ibshift_exchange exchange; /* the rest is of its own card */
    struct ibshift_card_values values;
    struct ibshift_node_card node;
    struct process process;
    char text[AGREED_MAX];
} cards = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum { STARTED = 22 }; /* the field of /proc/PID/stat, counted from 1; the third is the state */

/* 0, -ENOENT: there is no such process any more, or another errno. */
static int read_stat(uint64_t pid, char *state, uint64_t *started)
{
    char path[64], text[1024] = "", *at;
    unsigned long long ticks;
    FILE *file;
    int field = 2;

    snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
    file = fopen(path, "r");
    if (file == NULL) {
        return -errno;
    }
    at = fgets(text, sizeof(text), file); /* NULL: it ends right now, and is gone the next time */
    fclose(file);
    if (at == NULL) {
        return -EIO;
    }
    at = strrchr(text, ')'); /* the end of its name, which may hold anything */
    for (; at != NULL && field < STARTED; field++) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
        if (at != NULL && 2 == field) {
            *state = *at;
        }
    }
    if (at == NULL || 1 != sscanf(at, "%llu", &ticks)) {
        return -EIO;
    }
    *started = ticks;
    return 0;
}

/* Of the kernel that runs now and this process's namespace of process numbers; 0: not known. */
static uint64_t space_of_numbers(void)
{
    char boot[64] = "";
    struct stat numbers;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    uint64_t id;

    if (file == NULL) {
        return 0;
    }
    if (NULL == fgets(boot, sizeof(boot), file) || 0 != stat("/proc/self/ns/pid", &numbers)) {
        boot[0] = '\0';
    }
    fclose(file);
    if ('\0' == boot[0]) {
        return 0;
    }
    id = ibshift_digest(IBSHIFT_DIGEST, boot, strlen(boot));
    return ibshift_digest(id, &numbers.st_ino, sizeof(numbers.st_ino));
}

static struct process this_process(void)
{
    struct process self = {.space = space_of_numbers(), .pid = (uint64_t)getpid()};
    char state;

    if (0 != read_stat(self.pid, &state, &self.started)) {
        self.space = 0;
    }
    return self;
}

size_t ibshift_cards_open(const struct ibshift_exchange *exchange, const struct ibshift_card *card,
                          const char *agreed, char bytes[IBSHIFT_CARD_MAX])
{
    struct card_head head = {.magic = CARD_MAGIC,
                             .arch = exchange->arch,
                             .has_endpoint = card->address != NULL,
                             .values = card->values,
                             .processors = card->processors,
                             .is_software = card->is_software,
                             .is_crowded = card->is_crowded,
                             .is_to_be_said = card->is_to_be_said,
                             .process = this_process()};
    const void *content = head.has_endpoint ? card->address : card->error;
    size_t size = head.has_endpoint ? card->size : strlen(card->error);

    _Static_assert(sizeof(head) + ADDRESS_MAX + AGREED_MAX <= IBSHIFT_CARD_MAX, "it fits");
    snprintf(cards.text, sizeof(cards.text), "%s", agreed);
    if (card->node != NULL) {
        cards.node = head.node = *card->node;
    }
    cards.exchange = *exchange;
    cards.values = head.values;
    cards.process = head.process;
    head.length = (uint32_t)(size <= ADDRESS_MAX ? size : 0);
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), content, head.length);
    memcpy(bytes + sizeof(head) + head.length, cards.text, strlen(cards.text) + 1);
    return sizeof(head) + head.length + strlen(cards.text) + 1;
}

/* For free(); what follows the head is at *rest, and the agreed text ends with a zero. NULL: no
 * card that can be read, whatever memory there is here: all ranks must agree on it. */
static char *receive(uint32_t peer, struct card_head *head, const char **rest)
{
    size_t size = 0;
    char *received = cards.exchange.receive(peer, &size);

    *head = (struct card_head){0};
    if (received != NULL && size > sizeof(*head) && received[size - 1] == '\0') {
        memcpy(head, received, sizeof(*head));
    }
    if (head->magic != CARD_MAGIC || head->arch != cards.exchange.arch ||
        head->length >= size - sizeof(*head)) {
        free(received);
        return NULL;
    }
    *rest = received + sizeof(*head);
    return received;
}

int ibshift_card_copy(void *context, uint32_t peer, void *card, size_t size)
{
    struct card_head head;
    const char *rest;
    char *received = receive(peer, &head, &rest);
    int rc = -ENOENT;

    if (received != NULL && head.has_endpoint) {
        memcpy(card, rest, head.length < size ? head.length : size);
        rc = (int)head.length;
    }
    free(received);
    return rc;
}

static bool has_our_values(const struct card_head *head)
{
    return head->values.params == cards.values.params && head->values.model == cards.values.model;
}

/* Why a process is not there; returns whether that is to be said unasked. */
static bool complain(uint32_t peer, char *text, size_t size)
{
    struct card_head head;
    const char *rest;
    char *received = receive(peer, &head, &rest);
    bool is_to_be_said = true;

    if (received == NULL) {
        snprintf(text, size, "it has no ibshift, or another build of it");
        return false;
    }
    snprintf(text, size, "its address cannot be read");
    if (head.values.params != cards.values.params) {
        if (!cards.exchange.differ(rest + head.length, cards.text, text, size)) {
            snprintf(text, size,
                     "it has other algorithms to choose from: another build of ibshift");
        }
    } else if (head.values.model != cards.values.model) {
        snprintf(text, size, "its file coll_ibshift_model, _rules or _plan says something else");
    } else if (!head.has_endpoint) {
        is_to_be_said = head.is_to_be_said;
        snprintf(text, size, "%.*s", (int)head.length, rest);
    }
    free(received);
    return is_to_be_said;
}

/* Grows the table; under the lock. */
static bool reserve(uint32_t peer)
{
    uint32_t wanted = cards.size == 0 ? 64 : cards.size;
    struct known *grown;

    while (wanted <= peer) {
        wanted *= 2;
    }
    if (wanted == cards.size) {
        return true;
    }
    grown = realloc(cards.known, wanted * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    memset(grown + cards.size, 0, (wanted - cards.size) * sizeof(*grown)); /* UNKNOWN */
    cards.known = grown;
    cards.size = wanted;
    return true;
}

/* Without an adapter a process shares its port with nobody. */
static bool read_place(const struct card_head *head, const char *card,
                       struct ibshift_card_place *place)
{
    struct ibshift_node_card node;
    struct ibshift_verbs_blob blob;

    *place = (struct ibshift_card_place){.processors = head->processors > 0 ? head->processors : 1,
                                         .is_crowded = 0 != head->is_crowded,
                                         .is_software = 0 != head->is_software,
                                         .has_adapter = 0 != head->has_endpoint,
                                         .fabric = head->values.fabric,
                                         .costs = head->values.costs};
    if (0 == ibshift_node_card_decode(&head->node, sizeof(head->node), &node)) {
        place->node = place->host = node.host;
        place->port = node.secret;
    }
    if (!place->has_adapter) {
        return 0 != place->node;
    }
    if (0 != ibshift_verbs_blob_decode(card, head->length, &blob)) {
        return false;
    }
    place->host = blob.host;
    place->pkey = blob.address[0].is_ethernet ? IBSHIFT_PKEY_FULL : blob.address[0].pkey;
    place->port = ibshift_digest(IBSHIFT_DIGEST, &blob.address[0], sizeof(blob.address[0]));
    return true;
}

static struct known look(uint32_t peer)
{
    struct known known_now = {.state = ABSENT};
    struct card_head head;
    const char *rest;
    char *received = receive(peer, &head, &rest);

    if (received != NULL && has_our_values(&head) && read_place(&head, rest, &known_now.place)) {
        known_now.state = PRESENT;
        known_now.process = head.process;
    }
    free(received);
    return known_now;
}

static struct known know(uint32_t peer)
{
    struct known found;

    pthread_mutex_lock(&cards.lock);
    if (reserve(peer) && UNKNOWN != cards.known[peer].state) {
        found = cards.known[peer];
    } else {
        found = look(peer);
        if (peer < cards.size) {
            cards.known[peer] = found;
        }
    }
    pthread_mutex_unlock(&cards.lock);
    return found;
}

int ibshift_card_node(void *context, uint32_t peer, struct ibshift_node_card *card)
{
    struct card_head head;
    const char *rest;
    char *received = receive(peer, &head, &rest);
    int rc =
        received == NULL ? -ENOENT : ibshift_node_card_decode(&head.node, sizeof(head.node), card);

    free(received);
    return rc;
}

bool ibshift_card_is_near(void *context, uint32_t peer)
{
    struct ibshift_node_card card;

    return 0 != cards.node.magic && 0 == ibshift_card_node(NULL, peer, &card) &&
           ibshift_node_is_near(&cards.node, &card);
}

bool ibshift_card_place(uint32_t peer, struct ibshift_card_place *place)
{
    struct known known = know(peer);

    *place = known.place;
    return PRESENT == known.state;
}

void ibshift_cards_forget(void)
{
    free(cards.known);
    cards.known = NULL;
    cards.size = 0;
}

const char *ibshift_card_has_ended(void *context, uint32_t peer)
{
    struct process process = know(peer).process;
    uint64_t started;
    char state = 0;
    int rc;

    (void)context;
    if (process.space == 0 || process.space != cards.process.space) {
        return NULL;
    }
    rc = read_stat(process.pid, &state, &started);
    if (rc == -ENOENT || (rc == 0 && started != process.started)) {
        return "there is no such process on this host any more";
    }
    return rc == 0 && (state == 'Z' || state == 'X') ? "it has ended, as this host's kernel says"
                                                     : NULL;
}

uint32_t ibshift_cards_absent(uint32_t count, uint32_t *first, char *text, size_t size)
{
    uint32_t absent = 0;
    char why[TEXT];

    for (uint32_t peer = 0; peer < count; peer++) {
        if (know(peer).state != PRESENT && complain(peer, why, sizeof(why)) && absent++ == 0) {
            *first = peer;
            snprintf(text, size, "%s", why);
        }
    }
    return absent;
}

struct keys_apart {
    uint32_t at[2]; /* among the peers */
    uint16_t key[2];
};

/* Two peers that partition keys keep apart, if there are any: of different partitions, or both
   limited members. All answer alike, since each looks at all of them and not at its own peers
   alone. */
static bool are_apart(const uint32_t *peers, uint32_t count, struct keys_apart *apart)
{
    struct ibshift_card_place first = know(peers[0]).place;
    int64_t limited = -1;

    for (uint32_t i = 0; i < count; i++) {
        uint16_t key = know(peers[i]).place.pkey;

        *apart = (struct keys_apart){{0, i}, {first.pkey, key}};
        if (((first.pkey ^ key) & IBSHIFT_PKEY_PARTITION) != 0) {
            return true;
        }
        if ((key & IBSHIFT_PKEY_FULL) == 0) {
            if (limited >= 0) {
                *apart = (struct keys_apart){{(uint32_t)limited, i}, {key, key}};
                return true;
            }
            limited = i;
        }
    }
    return false;
}

bool ibshift_cards_keys_apart(uint32_t count, char *text, size_t size)
{
    uint32_t *peers = malloc(count * sizeof(*peers));
    bool have_adapters = peers != NULL, is_apart;
    struct keys_apart apart;

    for (uint32_t i = 0; have_adapters && i < count; i++) {
        struct known known = know(i);

        peers[i] = i;
        have_adapters = known.state == PRESENT && known.place.has_adapter;
    }
    is_apart = have_adapters && are_apart(peers, count, &apart);
    if (is_apart) {
        snprintf(text, size,
                 "ranks %u and %u have partition keys 0x%04x and 0x%04x, which do not reach each "
                 "other (the upper bit: full member): name one that all ranks have with "
                 "coll_ibshift_pkey, or have the subnet manager make them full members",
                 apart.at[0], apart.at[1], apart.key[0], apart.key[1]);
    }
    free(peers);
    return is_apart;
}

bool ibshift_cards_reach(const uint32_t *peers, uint32_t count)
{
    bool have_adapters = true, share_memory = true;
    struct keys_apart apart;
    uint64_t node = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct known known = know(peers[i]);

        if (known.state != PRESENT) {
            return false;
        }
        node = i == 0 ? known.place.node : node;
        have_adapters &= known.place.has_adapter;
        share_memory &= known.place.node != 0 && known.place.node == node;
    }
    return share_memory || (have_adapters && !are_apart(peers, count, &apart));
}

void ibshift_cards_why_not(uint32_t count, char *text, size_t size)
{
    char why[TEXT];
    uint32_t peer = 0;

    if (count < 2) {
        snprintf(text, size, "the job has one process only");
    } else if (!ibshift_cards_keys_apart(count, text, size)) {
        while (peer < count && know(peer).state == PRESENT) {
            peer++;
        }
        for (uint32_t i = 0; peer == count && i < count; i++) { /* all are here, but apart */
            peer = know(i).place.has_adapter ? peer : i;
        }
        (void)complain(peer, why, sizeof(why));
        snprintf(text, size, "rank %u: %s", peer, why);
    }
}
