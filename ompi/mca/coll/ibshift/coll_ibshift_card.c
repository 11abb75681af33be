#include "coll_ibshift.h"
#include "coll_ibshift_card.h"

#include "opal/util/arch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CARD_MAGIC = 0x49425348, CARD_MAX = 4096 };

struct card_head {
    uint32_t magic;
    uint32_t arch; /* how the process represents numbers */
    uint32_t has_endpoint;
    uint32_t length; /* of the card that follows */
    uint64_t fabric; /* identity of the fabric file; 0: none */
};

enum { UNKNOWN, PRESENT, ABSENT };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers the next two */
static uint8_t *known;                                   /* by peer */
static uint32_t known_size;

void ibshift_card_publish(const void *card, size_t size, uint64_t fabric)
{
    struct card_head head = {.magic = CARD_MAGIC, .arch = opal_local_arch, .fabric = fabric};
    char buffer[sizeof(head) + CARD_MAX];
    int rc;

    if (NULL != card && size <= CARD_MAX) {
        head.has_endpoint = 1;
        head.length = (uint32_t)size;
        memcpy(buffer + sizeof(head), card, size);
    }
    memcpy(buffer, &head, sizeof(head));
    OPAL_MODEX_SEND(rc, IBSHIFT_MODEX_GLOBAL, &mca_coll_ibshift_component.collm_version, buffer,
                    sizeof(head) + head.length);
    (void)rc; /* without a card the others do not find this process, which is right then */
}

static int receive(uint32_t peer, char **received, size_t *size)
{
    opal_process_name_t name = {.jobid = OMPI_PROC_MY_NAME->jobid, .vpid = peer};
    struct card_head head = {0};
    int rc;

    *received = NULL;
    OPAL_MODEX_RECV(rc, &mca_coll_ibshift_component.collm_version, &name, (void **)received, size);
    if (OPAL_SUCCESS != rc || NULL == *received) {
        return -ENOENT;
    }
    if (*size >= sizeof(head)) {
        memcpy(&head, *received, sizeof(head));
    }
    if (CARD_MAGIC != head.magic || opal_local_arch != head.arch || !head.has_endpoint ||
        head.length != *size - sizeof(head)) {
        free(*received);
        *received = NULL;
        return -EPROTO;
    }
    return 0;
}

int ibshift_card_copy(void *context, uint32_t peer, void *card, size_t size)
{
    size_t length;
    char *received;
    int rc = receive(peer, &received, &length);

    if (rc < 0) {
        return rc;
    }
    length -= sizeof(struct card_head);
    memcpy(card, received + sizeof(struct card_head), length < size ? length : size);
    free(received);
    return (int)length;
}

uint64_t ibshift_card_fabric(uint32_t peer)
{
    struct card_head head;
    char *received;
    size_t size;

    if (0 != receive(peer, &received, &size)) {
        return 0;
    }
    memcpy(&head, received, sizeof(head));
    free(received);
    return head.fabric;
}

/* Grows the table; under the lock. */
static bool reserve(uint32_t peer)
{
    uint32_t wanted = known_size == 0 ? 64 : known_size;
    uint8_t *grown;

    while (wanted <= peer) {
        wanted *= 2;
    }
    if (wanted == known_size) {
        return true;
    }
    grown = realloc(known, wanted);
    if (NULL == grown) {
        return false;
    }
    memset(grown + known_size, UNKNOWN, wanted - known_size);
    known = grown;
    known_size = wanted;
    return true;
}

bool ibshift_card_is_there(uint32_t peer)
{
    bool is_there;
    char *received;
    size_t size;

    pthread_mutex_lock(&lock);
    if (reserve(peer) && UNKNOWN != known[peer]) {
        is_there = PRESENT == known[peer];
    } else {
        is_there = 0 == receive(peer, &received, &size);
        free(received);
        if (peer < known_size) {
            known[peer] = is_there ? PRESENT : ABSENT;
        }
    }
    pthread_mutex_unlock(&lock);
    return is_there;
}

void ibshift_cards_forget(void)
{
    free(known);
    known = NULL;
    known_size = 0;
}
