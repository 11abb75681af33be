#include "coll_ibshift.h"
#include "coll_ibshift_cards.h"

#include "opal/util/arch.h"

#include "net/verbs/blob.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choose/digest.h"

enum { CARD_MAGIC = 0x4c425349, CARD_MAX = 4096, AGREED_MAX = 1024 };

struct card_head {
    uint32_t magic;
    uint32_t arch; /* how the process represents numbers */
    uint32_t has_endpoint;
    uint32_t length; /* of what follows: the card, or why there is none; then the agreed text */
    struct ibshift_card_values values;
    uint32_t processors, is_software; /* of struct ibshift_card_place; the card says the rest */
    uint32_t is_to_be_said;           /* why there is none */
    uint32_t reserved;
    struct ibshift_process process;
    struct ibshift_node_card node; /* magic 0: none */
};

enum { UNKNOWN, PRESENT, ABSENT };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers the next two */
static struct known {
    struct ibshift_card_place place;
    uint8_t state;
} * known; /* by peer */
static uint32_t known_size;
static struct ibshift_card_values ours;
static struct ibshift_node_card our_node;
static char our_text[AGREED_MAX];

void ibshift_card_publish(const void *card, size_t size, const struct ibshift_node_card *node,
                          const struct ibshift_card_values *values, const char *text,
                          const struct ibshift_card_place *place, const char *error,
                          bool is_to_be_said)
{
    struct card_head head = {.magic = CARD_MAGIC,
                             .arch = opal_local_arch,
                             .values = *values,
                             .processors = place->processors,
                             .is_software = place->is_software,
                             .is_to_be_said = is_to_be_said,
                             .process = place->process};
    char buffer[sizeof(head) + CARD_MAX + AGREED_MAX];
    size_t text_length;
    int rc;

    ours = *values;
    if (NULL != node) {
        our_node = head.node = *node;
    }
    snprintf(our_text, sizeof(our_text), "%s", text);
    text_length = strlen(our_text);
    head.has_endpoint = NULL != card;
    if (NULL == card) {
        card = error;
        size = strlen(error);
    }
    head.length = (uint32_t)(size <= CARD_MAX ? size : 0);
    memcpy(buffer + sizeof(head), card, head.length);
    memcpy(buffer, &head, sizeof(head));
    memcpy(buffer + sizeof(head) + head.length, our_text, text_length);
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

uint64_t ibshift_card_fabric(uint32_t peer)
{
    struct card_head head;
    const char *rest;
    char *received = receive(peer, &head, &rest);
    uint64_t fabric = NULL == received ? 0 : head.values.fabric;

    free(received);
    return fabric;
}

static bool has_our_values(const struct card_head *head)
{
    return head->values.params == ours.params && head->values.model == ours.model;
}

bool ibshift_card_complaint(uint32_t peer, char *text, size_t size)
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
    } else if (head.values.params != ours.params) {
        if (!ibshift_params_differ(rest + head.length, our_text, text, size)) {
            snprintf(text, size,
                     "it has other algorithms to choose from: another build of ibshift");
        }
    } else if (head.values.model != ours.model) {
        snprintf(text, size, "its file coll_ibshift_model says something else");
    }
    free(received);
    return is_to_be_said;
}

/* Grows the table; under the lock. */
static bool reserve(uint32_t peer)
{
    uint32_t wanted = known_size == 0 ? 64 : known_size;
    struct known *grown;

    while (wanted <= peer) {
        wanted *= 2;
    }
    if (wanted == known_size) {
        return true;
    }
    grown = realloc(known, wanted * sizeof(*grown));
    if (NULL == grown) {
        return false;
    }
    memset(grown + known_size, 0, (wanted - known_size) * sizeof(*grown)); /* UNKNOWN */
    known = grown;
    known_size = wanted;
    return true;
}

/* Without an adapter a process shares its port with nobody. */
static bool read_place(const struct card_head *head, const char *card,
                       struct ibshift_card_place *place)
{
    struct ibshift_node_card node;
    struct ibshift_verbs_blob blob;

    *place = (struct ibshift_card_place){.processors = head->processors > 0 ? head->processors : 1,
                                         .is_software = 0 != head->is_software,
                                         .has_adapter = 0 != head->has_endpoint};
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
    place->port = ibshift_digest(IBSHIFT_DIGEST, &blob.address[0], sizeof(blob.address[0]));
    place->process = head->process;
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
    }
    free(received);
    return known_now;
}

static struct known know(uint32_t peer)
{
    struct known found;

    pthread_mutex_lock(&lock);
    if (reserve(peer) && UNKNOWN != known[peer].state) {
        found = known[peer];
    } else {
        found = look(peer);
        if (peer < known_size) {
            known[peer] = found;
        }
    }
    pthread_mutex_unlock(&lock);
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

    return 0 != our_node.magic && 0 == ibshift_card_node(NULL, peer, &card) &&
           ibshift_node_is_near(&our_node, &card);
}

bool ibshift_card_is_there(uint32_t peer)
{
    return PRESENT == know(peer).state;
}

struct ibshift_card_place ibshift_card_place(uint32_t peer)
{
    return know(peer).place;
}

void ibshift_cards_forget(void)
{
    free(known);
    known = NULL;
    known_size = 0;
}
