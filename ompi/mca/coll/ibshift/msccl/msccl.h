/*
 * Algorithms of MSCCL (Cowan et al., "MSCCLang: Microsoft collective communication language", 2023) as XML. A GPU's thread blocks have
 * steps in a row: to send to one peer and receive from one over a channel, and local ones; a step may wait for one of another block.
 *
 * A rank becomes its thread blocks' steps in one row, in which they can run; what a step waits for follows from the chunks that it
 * touches, so nothing of the order in the file is lost that matters to the data. It is proved afterwards, by proof/check.h.
 */
#ifndef IBSHIFT_MSCCL_MSCCL_H
#define IBSHIFT_MSCCL_MSCCL_H

#include "choose/text.h"
#include "plan/listed.h"

enum ibshift_msccl_type {
    IBSHIFT_MSCCL_NOP,
    IBSHIFT_MSCCL_SEND,
    IBSHIFT_MSCCL_RECV,
    IBSHIFT_MSCCL_RECV_COPY_SEND,
    IBSHIFT_MSCCL_RECV_REDUCE_COPY,
    IBSHIFT_MSCCL_RECV_REDUCE_SEND,
    IBSHIFT_MSCCL_RECV_REDUCE_COPY_SEND,
    IBSHIFT_MSCCL_COPY,
    IBSHIFT_MSCCL_REDUCE,
    IBSHIFT_MSCCL_TYPES
};

enum {
    IBSHIFT_MSCCL_NONE = -1,
    IBSHIFT_MSCCL_RANKS_MOST = 1024,
    IBSHIFT_MSCCL_BLOCKS_MOST = 1 << 16, /* of all ranks */
    IBSHIFT_MSCCL_FILE_MOST = 1 << 26
};

struct ibshift_msccl_step {
    uint8_t type, src_buf, dst_buf; /* buffers as in a plan */
    uint32_t src, dst, count, line;
    int32_t dep_block, dep_step; /* of the same rank; IBSHIFT_MSCCL_NONE */
};

struct ibshift_msccl_block {
    int32_t to, from; /* ranks, or IBSHIFT_MSCCL_NONE */
    uint32_t rank, channel, line;
    uint32_t first, count; /* of its steps */
    int32_t receiver;      /* the block that takes what it sends, */
    int32_t sender;        /* and the one whose messages it takes */
};

struct ibshift_msccl {
    const char *name; /* of the file */
    enum ibshift_collective collective;
    bool in_place;
    uint32_t ranks;
    uint64_t bytes[2];                   /* as of struct ibshift_listed */
    uint32_t *first;                     /* by rank, and one more: of its blocks */
    uint32_t (*chunks)[IBSHIFT_BUFFERS]; /* by rank */
    struct ibshift_msccl_block *blocks;
    struct ibshift_msccl_step *steps;
    uint32_t block_count, step_count;
};

static inline bool ibshift_msccl_receives(const struct ibshift_msccl_step *step)
{
    return step->type >= IBSHIFT_MSCCL_RECV && step->type < IBSHIFT_MSCCL_COPY;
}

/* What comes, with what is there. */
static inline bool ibshift_msccl_reduces(const struct ibshift_msccl_step *step)
{
    return step->type >= IBSHIFT_MSCCL_RECV_REDUCE_COPY && step->type < IBSHIFT_MSCCL_COPY;
}

/* 0, or a negative errno with an error of IBSHIFT_TEXT_ERROR bytes that names file and line. To be freed only if 0. */
int ibshift_msccl_parse(const char *text, size_t length, const char *name,
                        struct ibshift_msccl *program, char *error);
void ibshift_msccl_free(struct ibshift_msccl *program);

/* The program as steps; likewise. */
int ibshift_msccl_list(const struct ibshift_msccl *program, struct ibshift_listed *listed,
                       char *error);

/* Both, of a file. */
int ibshift_msccl_read(const char *path, struct ibshift_listed *listed, char *error);

#endif
