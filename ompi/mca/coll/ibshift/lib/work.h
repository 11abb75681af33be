/* A call as one rank has it, before a plan is chosen: checked, and where its blocks lie. */
#ifndef IBSHIFT_LIB_WORK_H
#define IBSHIFT_LIB_WORK_H

#include "exec/blocks.h"
#include "group/group.h"
#include "lib/ibshift.h"

/* What a rank has on a side: one block, one for each rank, or a vector. */
enum ibshift_lib_side { NOTHING, BLOCK, BLOCKS, VECTOR };

struct ibshift_lib_form {
    enum ibshift_collective collective;
    const char *name;
    enum ibshift_lib_side send, recv;
    bool root_sends, root_receives; /* it alone */
    bool is_counted;                /* it may have counts */
};

struct ibshift_lib_work {
    const struct ibs_call *call;
    const struct ibshift_lib_form *form;
    enum ibshift_collective collective;
    uint32_t rank, ranks;
    size_t element, bytes; /* of a block, or the vector; with counts the mean */
    bool sends, receives, is_counted, is_in_place;
};

/* 0, or -EINVAL: the call is wrong. */
int ibshift_lib_check(const struct ibshift_group *group, const struct ibs_call *call,
                      struct ibshift_lib_work *work);

struct ibshift_wanted ibshift_lib_wanted(const struct ibshift_lib_work *work, bool is_blocking);

/* The blocks of both sides, but for pieces of vectors; copies: of counts and places, four for each rank. */
void ibshift_lib_blocks(const struct ibshift_lib_work *work, size_t *copies,
                        struct ibshift_blocks blocks[IBSHIFT_BUFFERS]);

/* How many bytes what is in place takes up, and from where on. */
size_t ibshift_lib_span(const struct ibshift_lib_work *work, const struct ibshift_blocks *send,
                        const char **from);

/* The whole collective, of a group of one. */
void ibshift_lib_alone(const struct ibshift_lib_work *work);

#endif
