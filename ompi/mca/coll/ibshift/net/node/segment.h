#ifndef IBSHIFT_NET_NODE_SEGMENT_H
#define IBSHIFT_NET_NODE_SEGMENT_H

/*
 * Segments: files in a folder of memory (/dev/shm) that processes of one user map.
 *
 * A record lock on the file says that its owner lives: the kernel takes it back with the process,
 * whatever the process ids of the two are to each other. So a segment that nobody has locked was
 * left by a process that was killed, and the next one to come removes it. A file gets its name
 * only when it is locked, and is told to others when it is complete.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE /* glibc before 2.35 */
#define MADV_POPULATE_WRITE 23
#endif

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

/* Both find the same answer, from the cards alone. */
bool ibshift_node_is_near(const struct ibshift_node_card *a, const struct ibshift_node_card *b);

/* 0; -EPROTO: not a card, or of another version; -EINVAL: out of range. */
int ibshift_node_card_decode(const void *wire, size_t size, struct ibshift_node_card *card);

/*
 * Maps a ring before its first byte: a fresh one would cost a fault a page, on both sides, and as long
 * as nothing has gone round once that is most of a short message's time.
 */
void ibshift_node_map_ring(uint8_t *ring, uint32_t size);

#endif
