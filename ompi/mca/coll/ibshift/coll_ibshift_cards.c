#include "coll_ibshift_cards.h"
#include "coll_ibshift.h"
#include "coll_ibshift_params.h"

#include "ompi/group/group.h"
#include "opal/util/arch.h"

#include "net/verbs/blob.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "choose/digest.h"

enum { STARTED = 22 }; /* the field of /proc/PID/stat, counted from 1; the third is the state */

enum { CARD_MAGIC = 0x4c425349, CARD_MAX = 4096, AGREED_MAX = 1024, TEXT = 512 };

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
    pthread_mutex_t lock; /* covers the next two */
    struct known *known;  /* by peer */
    uint32_t size;        /* of known */
    bool is_used;         /* this process has an endpoint; the rest is of its own card */
    struct ibshift_card_values values;
    struct ibshift_node_card node;
    struct process process;
    char text[AGREED_MAX];
} cards = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* 0, -ENOENT: there is no such process any more, or another errno. */
static int read_stat(uint64_t pid, char *state, uint64_t *started)
{
    char path[64], text[1024] = "", *at;
    unsigned long long ticks;
    FILE *file;
    int field = 2;

    snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
    file = fopen(path, "r");
    if (NULL == file) {
        return -errno;
    }
    at = fgets(text, sizeof(text), file); /* NULL: it ends right now, and is gone the next time */
    fclose(file);
    if (NULL == at) {
        return -EIO;
    }
    at = strrchr(text, ')'); /* the end of its name, which may hold anything */
    for (; NULL != at && field < STARTED; field++) {
        at = strchr(at, ' ');
        at = NULL == at ? NULL : at + 1;
        if (NULL != at && 2 == field) {
            *state = *at;
        }
    }
    if (NULL == at || 1 != sscanf(at, "%llu", &ticks)) {
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

    if (NULL == file) {
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

void ibshift_card_publish(const struct ibshift_card *card)
{
    struct card_head head = {.magic = CARD_MAGIC,
                             .arch = opal_local_arch,
                             .has_endpoint = NULL != card->address,
                             .values = card->values,
                             .processors = card->processors,
                             .is_software = card->is_software,
                             .is_crowded = card->is_crowded,
                             .is_to_be_said = card->is_to_be_said,
                             .process = this_process()};
    char buffer[sizeof(head) + CARD_MAX + AGREED_MAX];
    const void *content = head.has_endpoint ? card->address : card->error;
    size_t size = head.has_endpoint ? card->size : strlen(card->error), text_length;
    int rc;

    head.values.params = ibshift_params_agreed(cards.text, sizeof(cards.text));
    text_length = strlen(cards.text);
    if (NULL != card->node) {
        cards.node = head.node = *card->node;
    }
    cards.values = head.values;
    cards.process = head.process;
    cards.is_used = head.has_endpoint || NULL != card->node;
    head.length = (uint32_t)(size <= CARD_MAX ? size : 0);
    memcpy(buffer, &head, sizeof(head));
    memcpy(buffer + sizeof(head), content, head.length);
    memcpy(buffer + sizeof(head) + head.length, cards.text, text_length);
    OPAL_MODEX_SEND(rc, IBSHIFT_MODEX_GLOBAL, &mca_coll_ibshift_component.collm_version, buffer,
                    sizeof(head) + head.length + text_length);
    (void)rc; /* without a card the others do not find this process, which is right then */
}

/* For free(); what follows the head is at *rest, and the agreed text ends with a zero. NULL: no
 * card that can be read. */
static char *receive(uint32_t peer, struct card_head *head, const char **rest)
{
    opal_process_name_t name = {.jobid = OMPI_PROC_MY_NAME->jobid, .vpid = peer};
    char *received = NULL, *grown = NULL;
    size_t size = 0;
    int rc;

    OPAL_MODEX_RECV(rc, &mca_coll_ibshift_component.collm_version, &name, (void **)&received,
                    &size);
    if (OPAL_SUCCESS != rc || NULL == received) {
        return NULL;
    }
    *head = (struct card_head){0};
    if (size >= sizeof(*head)) {
        memcpy(head, received, sizeof(*head));
    }
    if (CARD_MAGIC != head->magic || opal_local_arch != head->arch ||
        head->length > size - sizeof(*head) || NULL == (grown = realloc(received, size + 1))) {
        free(received);
        return NULL;
    }
    grown[size] = '\0';
    *rest = grown + sizeof(*head);
    return grown;
}

int ibshift_card_copy(void *context, uint32_t peer, void *card, size_t size)
{
    struct card_head head;
    const char *rest;
    char *received = receive(peer, &head, &rest);
    int rc = -ENOENT;

    if (NULL != received && head.has_endpoint) {
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

    if (NULL == received) {
        snprintf(text, size, "it has no ibshift, or another build of it");
        return false;
    }
    snprintf(text, size, "its address cannot be read");
    if (!head.has_endpoint) {
        is_to_be_said = head.is_to_be_said;
        snprintf(text, size, "%.*s", (int)head.length, rest);
    } else if (head.values.params != cards.values.params) {
        if (!ibshift_params_differ(rest + head.length, cards.text, text, size)) {
            snprintf(text, size,
                     "it has other algorithms to choose from: another build of ibshift");
        }
    } else if (head.values.model != cards.values.model) {
        snprintf(text, size,
                 "its file coll_ibshift_model or coll_ibshift_rules says something else");
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
    if (NULL == grown) {
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

    if (NULL != received && has_our_values(&head) && read_place(&head, rest, &known_now.place)) {
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
        NULL == received ? -ENOENT : ibshift_node_card_decode(&head.node, sizeof(head.node), card);

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

    if (0 == process.space || process.space != cards.process.space) {
        return NULL;
    }
    rc = read_stat(process.pid, &state, &started);
    if (-ENOENT == rc || (0 == rc && started != process.started)) {
        return "there is no such process on this host any more";
    }
    return 0 == rc && ('Z' == state || 'X' == state) ? "it has ended, as this host's kernel says"
                                                     : NULL;
}

/* Once a job: of all its processes, by the first. */
static void report_absent(struct ompi_communicator_t *comm)
{
    char text[TEXT], first[TEXT] = "";
    uint32_t count = 0, first_rank = 0, size = (uint32_t)ompi_comm_size(comm);

    for (uint32_t i = 0; i < size; i++) {
        if (PRESENT != know(i).state && complain(i, text, sizeof(text)) && 0 == count++) {
            first_rank = i;
            memcpy(first, text, sizeof(first));
        }
    }
    if (count > 0) {
        ibshift_help_once_a_job("unlike", count, size, first_rank, first);
    }
}

struct keys_apart {
    int rank[2];
    uint16_t key[2];
};

/* Two ranks that partition keys keep apart, if there are any: of different partitions, or both
   limited members. All ranks answer alike, since each looks at all of them and not at its own
   peers alone. */
static bool are_apart(const struct ompi_communicator_t *comm, struct keys_apart *apart)
{
    int limited = -1;

    for (int i = 0; i < ompi_group_size(comm->c_local_group); i++) {
        struct ibshift_card_place place = {.pkey = 0};

        (void)ibshift_card_place(ompi_group_get_proc_name(comm->c_local_group, i).vpid, &place);
        if (0 == i) {
            *apart = (struct keys_apart){.key = {place.pkey}};
        }
        apart->rank[1] = i;
        apart->key[1] = place.pkey;
        if (0 != ((apart->key[0] ^ place.pkey) & IBSHIFT_PKEY_PARTITION)) {
            return true;
        }
        if (0 == (place.pkey & IBSHIFT_PKEY_FULL)) {
            if (limited >= 0) {
                apart->rank[0] = limited;
                apart->key[0] = place.pkey;
                return true;
            }
            limited = i;
        }
    }
    return false;
}

/* Whether all have adapters, and keys keep two of them apart: then text says which and what to do. */
static bool have_keys_apart(const struct ompi_communicator_t *comm, char *text, size_t size)
{
    struct ibshift_card_place place;
    struct keys_apart apart;

    for (int i = 0; i < ompi_group_size(comm->c_local_group); i++) {
        uint32_t peer = ompi_group_get_proc_name(comm->c_local_group, i).vpid;
        if (!ibshift_card_place(peer, &place) || !place.has_adapter) {
            return false;
        }
    }
    if (!are_apart(comm, &apart)) {
        return false;
    }
    snprintf(text, size,
             "ranks %d and %d have partition keys 0x%04x and 0x%04x, which do not reach each "
             "other (the upper bit: full member): name one that all ranks have with "
             "coll_ibshift_pkey, or have the subnet manager make them full members",
             apart.rank[0], apart.rank[1], apart.key[0], apart.key[1]);
    return true;
}

/* Over the adapters of all of them, or in the memory of the one host that they are all on. */
static bool can_reach_each_other(const struct ompi_communicator_t *comm)
{
    bool have_adapters = true, share_memory = true;
    struct keys_apart apart;
    uint64_t node = 0;

    for (int i = 0; i < ompi_group_size(comm->c_local_group); i++) {
        opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, i);
        struct ibshift_card_place place;

        /* Another job (spawned, connected) has other numbers for its processes. */
        if (name.jobid != OMPI_PROC_MY_NAME->jobid || !ibshift_card_place(name.vpid, &place)) {
            return false;
        }
        node = 0 == i ? place.node : node;
        have_adapters &= place.has_adapter;
        share_memory &= 0 != place.node && place.node == node;
    }
    return (have_adapters && !are_apart(comm, &apart)) || share_memory;
}

uint32_t *ibshift_cards_peers(struct ompi_communicator_t *comm)
{
    int size = ompi_comm_size(comm);
    uint32_t *peers;

    if (!can_reach_each_other(comm)) {
        char text[TEXT];

        if (cards.is_used && comm == &ompi_mpi_comm_world.comm && 0 == OMPI_PROC_MY_NAME->vpid) {
            report_absent(comm);
            if (!ibshift_params.explain && have_keys_apart(comm, text, sizeof(text))) {
                ibshift_help("keys-apart", text);
            }
        }
        return NULL;
    }
    peers = malloc((size_t)size * sizeof(uint32_t));
    for (int i = 0; NULL != peers && i < size; i++) {
        peers[i] = ompi_group_get_proc_name(comm->c_local_group, i).vpid;
    }
    return peers;
}

void ibshift_cards_why_not(struct ompi_communicator_t *comm, char *text, size_t size)
{
    char complaint[TEXT];
    uint32_t rank = 0, ranks = (uint32_t)ompi_comm_size(comm);
    struct ibshift_card_place place;

    if (ranks < 2) {
        snprintf(text, size, "the job has one process only");
        return;
    }
    if (have_keys_apart(comm, text, size)) {
        return;
    }
    while (rank + 1 < ranks && ibshift_card_place(rank, &place) && place.has_adapter) {
        rank++;
    }
    (void)complain(rank, complaint, sizeof(complaint));
    snprintf(text, size, "rank %u: %s", rank, complaint);
}
