#ifndef IBSHIFT_NET_NODE_NODE_H
#define IBSHIFT_NET_NODE_NODE_H

/*
 * The net of one host: messages between its processes through shared memory.
 *
 * Short messages go into the receiver's box: up to 40 bytes in a cell, longer ones in parts through
 * the box's ring. Long ones are offered, and the receiver chooses (choose_way() in recv.c): it has the
 * kernel copy them (process_vm_readv), perhaps with the sender's help (process_vm_writev, copy.c), or asks for
 * them through the ring. What counts as short is ibshift_nn_goes_at_once() in private.h: up to
 * a quarter of the ring, or less where the kernel was measured to be faster.
 *
 * A sender may be ahead: messages that nobody waits for yet are held by the receiver within a
 * quota of bytes per sender. Who waits for a message that the quota may keep back grants it by its
 * name, and such messages are free of quota: so what is waited for always comes.
 */

#include "net/net.h"

enum { IBSHIFT_NODE_NAME = 32 };

/* What a process tells all others about its segment, through the launcher's exchange. */
struct ibshift_node_card {
    uint32_t magic;
    uint16_t version;
    uint16_t place; /* among the processes of the job on the host: its box in all segments */
    uint64_t host;  /* the same for processes that can open each other's files, and for them only */
    uint64_t secret;    /* random: tells the segment from any other of that name */
    uint64_t secret_at; /* where the process has it in its own memory */
    uint32_t pid;
    uint32_t boxes;
    uint32_t ring;
    uint32_t reserved;
    char name[IBSHIFT_NODE_NAME];
};

/* The host of a card before there is one, in folder, or NULL: /dev/shm. 0 or a negative errno. */
int ibshift_node_host(const char *folder, uint64_t *host);

/* Both find the same answer, from the cards alone. */
bool ibshift_node_is_near(const struct ibshift_node_card *a, const struct ibshift_node_card *b);

/* 0; -EPROTO: not a card, or of another version; -EINVAL: out of range. */
int ibshift_node_card_decode(const void *wire, size_t size, struct ibshift_node_card *card);

/* A peer with a processor of its own has answered after so many looks, and a yield costs more; one
 * that waits for this rank's processor cannot (4 ranks on 2 processors: 512 looks take 1.2 times as long). */
enum { IBSHIFT_NODE_LOOKS = 512, IBSHIFT_NODE_LOOKS_CROWDED = 4 };

struct ibshift_node_options {
    const char *folder; /* NULL: /dev/shm */
    uint32_t processes; /* of the job on this host */
    uint32_t place;     /* of this one among them */
    uint32_t job;       /* tells it from the other jobs of the host */
    uint32_t self;      /* its number as a peer */
    size_t memory;      /* bytes of the segment at the most; its share of the folder may be less */
    bool may_copy;      /* the kernel may be asked to copy between processes */
    bool is_gauged; /* what the ring takes is measured, and the kernel copies where it takes less */
    uint32_t looks; /* at the cell of a message that is tried, before anything else is done */
    /* The card of a peer: 0, or a negative errno. */
    int (*card)(void *context, uint32_t peer, struct ibshift_node_card *card);
    struct ibshift_net_comms comms;
    void (*say)(void *context, const char *line); /* one line for people; NULL: nobody listens */
    void *context;
};

struct ibshift_node_stats {
    uint64_t cells;   /* messages that fit into one */
    uint64_t rings;   /* that went through a ring */
    uint64_t direct;  /* that the kernel copied */
    uint64_t bytes;   /* of all of them */
    uint64_t held;    /* that came before anyone waited */
    uint64_t control; /* news */
};

/* 0 or a negative errno with one line in why. The card to publish is ibshift_net_node_card(). */
int ibshift_net_node_create(const struct ibshift_node_options *options, struct ibshift_net **net,
                            char *why, size_t size);

const struct ibshift_node_card *ibshift_net_node_card(const struct ibshift_net *net);

/* From now on; for whoever measures what a crowded host costs, as a process can have one such net only. */
void ibshift_net_node_look(struct ibshift_net *net, uint32_t looks);

void ibshift_net_node_stats(const struct ibshift_net *net, struct ibshift_node_stats *stats);

#endif
