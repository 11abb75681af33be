#include "node_nets.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ibshift_net *nets[NETS];
struct ibshift_node_card cards[NETS];
char folder[64];
int card_of(void *context, uint32_t peer, struct ibshift_node_card *card)
{
    (void)context;
    if (peer >= NETS) {
        return -ENOENT;
    }
    *card = cards[peer];
    return 0;
}

void open_net(uint32_t i, size_t memory, bool may_copy)
{
    struct ibshift_node_options options = {.folder = folder,
                                           .processes = NETS,
                                           .place = i,
                                           .self = i,
                                           .memory = memory,
                                           .may_copy = may_copy,
                                           .looks = 1,
                                           .card = card_of};
    char why[200];

    if (ibshift_net_node_create(&options, &nets[i], why, sizeof(why)) != 0) {
        fail_msg("%s", why);
    }
    cards[i] = *ibshift_net_node_card(nets[i]);
}

void open_all(size_t memory, bool may_copy)
{
    for (uint32_t i = 0; i < NETS; i++) {
        open_net(i, memory, may_copy);
    }
}

/* What messages have, until the nets are closed. */
static struct made {
    struct made *next;
    uint8_t *out, *in;
} * all_made;

void close_all(void)
{
    struct made *made;

    for (uint32_t i = 0; i < NETS; i++) {
        ibshift_net_destroy(nets[i]);
    }
    while ((made = all_made) != NULL) {
        all_made = made->next;
        free(made->out);
        free(made->in);
        free(made);
    }
}

int open_usual(void **state)
{
    open_all(1 << 20, true);
    return 0;
}

int close_usual(void **state)
{
    close_all();
    return 0;
}

struct ibshift_node_peer *peer_of(uint32_t net)
{
    return ibshift_nn_peer(ibshift_node(nets[net]), !net);
}

void nets_make(struct message *m, uint32_t from, uint32_t to, uint32_t tag, size_t length)
{
    struct made *made = malloc(sizeof(*made));

    *made = (struct made){all_made, malloc(length + 1), calloc(1, length + 1)};
    all_made = made;
    *m = (struct message){.from = from,
                          .to = to,
                          .key = {.comm = COMM, .seq = 1, .tag = tag},
                          .length = length,
                          .out = made->out,
                          .in = made->in,
                          .send_status = WAITING,
                          .recv_status = WAITING};
    for (size_t i = 0; i < length; i++) {
        m->out[i] = (uint8_t)(i * 31 + tag + (i >> 8));
    }
}

void nets_take(uint32_t net)
{
    struct ibshift_net_event events[8];
    int n = ibshift_net_poll(nets[net], events, 8);

    for (int i = 0; i < n; i++) {
        *(int *)(uintptr_t)events[i].cookie = events[i].status;
    }
}

void nets_take_all(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        for (uint32_t net = 0; net < NETS; net++) {
            nets_take(net);
        }
    }
}

int nets_post(struct message *m, bool is_send)
{
    struct ibshift_net_message message = {
        .peer = is_send ? m->to : m->from,
        .key = m->key,
        .buffer = is_send ? m->out : m->in,
        .length = m->length,
        .is_busy = m->is_busy,
        .is_attended = m->is_attended,
        .cookie = (uintptr_t)(is_send ? &m->send_status : &m->recv_status)};
    struct ibshift_net *net = nets[is_send ? m->from : m->to];
    int rc = is_send ? ibshift_net_send(net, &message) : ibshift_net_recv(net, &message);

    if (rc != IBSHIFT_NET_PENDING && rc != -EAGAIN) {
        *(is_send ? &m->send_status : &m->recv_status) = rc == IBSHIFT_NET_DONE ? 0 : rc;
    }
    *(is_send ? &m->is_sent : &m->is_received) = rc != -EAGAIN;
    return rc;
}

void assert_arrived(const struct message *m)
{
    assert_int_equal(m->send_status, 0);
    assert_int_equal(m->recv_status, 0);
    assert_memory_equal(m->in, m->out, m->length);
}

bool nets_tried(const struct message *m)
{
    struct ibshift_net_channel *from = nets[m->to]->ops->channel(nets[m->to], m->from);

    return from->try_recv(from, ibshift_net_comm_seq(m->key.comm, m->key.seq), m->key.tag, m->in,
                          m->length);
}

int make_folder(void **state)
{
    snprintf(folder, sizeof(folder), "/dev/shm/test-node-XXXXXX");
    return mkdtemp(folder) == NULL;
}

int remove_folder(void **state)
{
    return rmdir(folder);
}
