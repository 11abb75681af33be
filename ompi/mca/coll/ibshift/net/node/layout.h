#ifndef IBSHIFT_NET_NODE_LAYOUT_H
#define IBSHIFT_NET_NODE_LAYOUT_H

/*
 * What the processes of one host share: one segment per process, its inbox, which only it reads.
 * It has one box for each process of the job on the host, and only that process writes into it.
 *
 *   struct ibshift_node_head        who owns the segment, sizes
 *   boxes[count], each
 *     struct ibshift_node_taken     written by the owner: what may be written over
 *     struct ibshift_node_shares    written by both: long messages that both copy
 *     struct ibshift_node_cell[]    short messages, and news about long ones
 *     ring                          bytes that are too many for a cell
 *
 * A cell is one cache line and so arrives whole. Everything else is written before the cell that
 * speaks of it: the store of its turn releases, the reader's load acquires.
 */

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "net/node/node.h"

#ifndef MADV_POPULATE_WRITE /* glibc before 2.35 */
#define MADV_POPULATE_WRITE 23
#endif

enum {
    IBSHIFT_NODE_MAGIC = 0x6e736269,
    IBSHIFT_NODE_VERSION = 6,
    IBSHIFT_NODE_CELLS = 64,
    IBSHIFT_NODE_CELL_DATA = 40,
    IBSHIFT_NODE_LINE =
        128, /* what two writers must not share: adjacent lines are fetched in pairs */
};

enum ibshift_node_kind {
    IBSHIFT_NODE_HELLO, /* the first cell of a box: value is the sender's number */
    IBSHIFT_NODE_DATA,  /* a whole message, in the cell */
    IBSHIFT_NODE_PART,  /* bytes of a message, in the ring */
    IBSHIFT_NODE_GRANT, /* the receive is posted: where it wants the message, or that it may come */
    IBSHIFT_NODE_FETCH, /* the receive is posted, and the receiver copies: where is the message? The
                           sender may copy, too, where there is an address */
    IBSHIFT_NODE_OFFER, /* a long message is there, asked for or not */
    IBSHIFT_NODE_TAKEN, /* it has been fetched */
    IBSHIFT_NODE_WITHDRAWN, /* it is there no more: its buffer is about to be used again */
    IBSHIFT_NODE_UNGRANT,   /* the grant of a short message has crossed with it, or is taken back */
    IBSHIFT_NODE_DONE, /* all of a long message is taken, and this is what its sender has written */
    IBSHIFT_NODE_REVOKE,    /* nothing may be written under this grant any more */
    IBSHIFT_NODE_REVOKED,   /* nothing will */
    IBSHIFT_NODE_ASK,       /* a long message has waited for its grant: is its length wrong? */
    IBSHIFT_NODE_ASK_AFTER, /* does the receiver still take part in the collective? */
    IBSHIFT_NODE_ENDED,     /* not any more: it has ended it, after all that is before this cell */
    IBSHIFT_NODE_ABORT,     /* the sender has given the collective up */
    IBSHIFT_NODE_BREAK,     /* and all that goes on between the two; value says why */
};

enum { IBSHIFT_NODE_FREE_OF_QUOTA = 1 }; /* flag of DATA and PART: the receive was posted */

struct ibshift_node_cell {
    _Atomic uint32_t turn; /* 1 + how many cells were written before, ever */
    uint8_t kind;
    uint8_t flags;
    uint16_t size; /* DATA: bytes in the cell; PART: in the ring */
    struct ibshift_net_key key;
    uint32_t
        at; /* PART: where in the ring; OFFER: what the sender sends at once; FETCH: the share */
    union {
        uint8_t data[IBSHIFT_NODE_CELL_DATA];
        struct {
            uint64_t length, offset; /* of the message */
        } part;
        struct {
            uint64_t length, address;
        } grant;
        int64_t value;
    };
};
static_assert(sizeof(struct ibshift_node_cell) == 64, "a cell is a cache line");

/* Counters that only grow, and wrap. */
struct ibshift_node_taken {
    _Atomic uint32_t cells;
    _Atomic uint32_t ring;  /* bytes */
    _Atomic uint32_t quota; /* bytes of messages that were held and are no more */
    /* The reader has given the connection up, and cannot say so in the writer's own segment. */
    _Atomic uint32_t is_lost;
    uint8_t rest[IBSHIFT_NODE_LINE - 16];
};

/*
 * Of a long message that both sides copy: how many of its bytes are taken by either, with the turn of the
 * share above it. Who wants a part moves the word on first, and copies then. A share is named by its turn
 * and its place, and is never 0; the owner of the box gives it to one of its messages after another, so
 * that a sender that is late takes nothing.
 */
enum { IBSHIFT_NODE_SHARES = 16, IBSHIFT_NODE_SHARE_BITS = 48 };
struct ibshift_node_shares {
    _Atomic uint64_t taken[IBSHIFT_NODE_SHARES];
};
static_assert(sizeof(struct ibshift_node_shares) == IBSHIFT_NODE_LINE, "what follows has its own");

static inline uint32_t ibshift_node_share(uint32_t place, uint32_t turn)
{
    return turn << 8 | IBSHIFT_NODE_SHARES | place;
}

struct ibshift_node_head {
    uint32_t magic, version;
    uint64_t secret;  /* as in the owner's card */
    uint64_t process; /* random; the same for all segments of one process */
    uint32_t boxes;
    uint32_t ring; /* bytes of each, a power of two */
    uint32_t job;  /* of the owner */
    uint8_t rest[IBSHIFT_NODE_LINE - 36];
};

static inline size_t ibshift_node_box_size(uint32_t ring)
{
    return sizeof(struct ibshift_node_taken) + sizeof(struct ibshift_node_shares) +
           IBSHIFT_NODE_CELLS * sizeof(struct ibshift_node_cell) + ring;
}

static inline size_t ibshift_node_segment_size(uint32_t boxes, uint32_t ring)
{
    return sizeof(struct ibshift_node_head) + boxes * ibshift_node_box_size(ring);
}

/* One box, as its writer or its reader sees it. */
struct ibshift_node_box {
    struct ibshift_node_taken *taken;
    struct ibshift_node_shares *shares;
    struct ibshift_node_cell *cells;
    uint8_t *ring;
};

static inline struct ibshift_node_box ibshift_node_box(void *segment, uint32_t place, uint32_t ring)
{
    uint8_t *start =
        (uint8_t *)segment + sizeof(struct ibshift_node_head) + place * ibshift_node_box_size(ring);
    uint8_t *shares = start + sizeof(struct ibshift_node_taken);
    uint8_t *cells = shares + sizeof(struct ibshift_node_shares);

    return (struct ibshift_node_box){.taken = (struct ibshift_node_taken *)start,
                                     .shares = (struct ibshift_node_shares *)shares,
                                     .cells = (struct ibshift_node_cell *)cells,
                                     .ring = cells +
                                             IBSHIFT_NODE_CELLS * sizeof(struct ibshift_node_cell)};
}

/*
 * Segments: files in a folder of memory (/dev/shm) that processes of one user map.
 *
 * A record lock on the file says that its owner lives: the kernel takes it back with the process,
 * whatever the process ids of the two are to each other. So a segment that nobody has locked was
 * left by a process that was killed, and the next one to come removes it. A file gets its name
 * only when it is locked, and is told to others when it is complete.
 */

struct ibshift_node_segment {
    void *base;
    size_t size;
    int file;
    uint64_t secret; /* of the own one: others read it here to be sure whose memory a pid names */
};

/* What a segment is made for. */
struct ibshift_node_wish {
    uint32_t boxes; /* processes of the job on the host */
    uint32_t job;   /* tells it from the other jobs of the host */
    size_t memory;  /* bytes at the most */
};

/*
 * Makes, fills and locks a segment in folder, and removes what dead processes have left there. Its
 * ring is the largest for which there is room when all processes of the job take as much and half
 * of what was free before they came stays so. The card is filled but for place; *segment must stay
 * where it is. 0 or a negative errno, with one line in why.
 */
int ibshift_node_segment_make(const char *folder, const struct ibshift_node_wish *wish,
                              struct ibshift_node_segment *segment, struct ibshift_node_card *card,
                              char *why, size_t size);

/* Maps that of another process; checks that it is what the card says. */
int ibshift_node_segment_open(const char *folder, const struct ibshift_node_card *card,
                              struct ibshift_node_segment *segment, char *why, size_t size);

/* Whether the owner of an opened segment lives. */
bool ibshift_node_segment_is_alive(const struct ibshift_node_segment *segment);

/* name: of the own one, which is removed; NULL for those of others. */
void ibshift_node_segment_close(const char *folder, struct ibshift_node_segment *segment,
                                const char *name);

/*
 * Maps a ring before its first byte: a fresh one would cost a fault a page, on both sides, and as long
 * as nothing has gone round once that is most of a short message's time.
 */
void ibshift_node_map_ring(uint8_t *ring, uint32_t size);

#endif
