#include "colls.h"

#include <stdio.h>

/* bcast, gather, scatter, allgather, alltoall: blocks of one size. */

struct call {
    const struct how *how;
    const struct layout *layout;
    MPI_Comm comm;
    int rank, size;
    unsigned salt;
    char what[96];
};

static struct call call_begin(MPI_Comm comm, const struct how *how, const char *name)
{
    struct call call = {.how = how, .layout = how->layout, .comm = comm};

    MPI_Comm_rank(comm, &call.rank);
    MPI_Comm_size(comm, &call.size);
    snprintf(call.what, sizeof(call.what), "%s %s, %s, count %d, root %d%s", form_names[how->form],
             name, how->layout->name, how->count, how->root, how->in_place ? ", in place" : "");
    return call;
}

/* Block of a rank's contribution for a destination, into one block of a buffer. */
static void put(const struct call *call, struct buffer *buffer, int block, int from, int to)
{
    size_t count = (size_t)call->how->count;

    for (size_t i = 0; i < count; i++) {
        for (int word = 0; word < call->layout->words; word++) {
            *buffer_at(buffer, call->layout, (size_t)block * count + i, word) =
                value_of(from, ((size_t)to * count + i) * 2 + (size_t)word, call->salt);
        }
    }
}

struct buffers {
    struct buffer send, sent, recv, expected;
};

static struct buffers buffers_create(const struct call *call, int send_blocks, int recv_blocks)
{
    size_t count = (size_t)call->how->count;

    return (struct buffers){
        .send = buffer_create(call->layout, (size_t)send_blocks * count),
        .sent = buffer_create(call->layout, (size_t)send_blocks * count),
        .recv = buffer_create(call->layout, (size_t)recv_blocks * count),
        .expected = buffer_create(call->layout, (size_t)recv_blocks * count),
    };
}

static void buffers_next(struct call *call, struct buffers *b)
{
    call->salt = next_salt();
    buffer_clear(&b->send);
    buffer_clear(&b->sent);
    buffer_clear(&b->recv);
    buffer_clear(&b->expected);
}

static void buffers_compare(const struct call *call, const struct buffers *b)
{
    buffer_compare(&b->recv, &b->expected, call->what);
    buffer_compare(&b->send, &b->sent, call->what);
}

static void buffers_free(struct buffers *b)
{
    buffer_free(&b->send);
    buffer_free(&b->sent);
    buffer_free(&b->recv);
    buffer_free(&b->expected);
}

static void check_bcast(MPI_Comm comm, const struct how *how)
{
    struct call call = call_begin(comm, how, "bcast");
    struct buffers b = buffers_create(&call, 0, 1);
    struct run run = run_begin(how->form);

    while (run_next(&run)) {
        buffers_next(&call, &b);
        if (call.rank == how->root) {
            put(&call, &b.recv, 0, how->root, 0);
        }
        put(&call, &b.expected, 0, how->root, 0);
        RUN(&run, Bcast, bcast, b.recv.start, how->count, how->layout->type, how->root, comm);
        buffers_compare(&call, &b);
    }
    buffers_free(&b);
}

static void check_gather(MPI_Comm comm, const struct how *how)
{
    struct call call = call_begin(comm, how, "gather");
    struct buffers b = buffers_create(&call, 1, call.size);
    struct run run = run_begin(how->form);
    bool in_place = how->in_place && call.rank == how->root;

    while (run_next(&run)) {
        buffers_next(&call, &b);
        put(&call, &b.send, 0, call.rank, 0);
        put(&call, &b.sent, 0, call.rank, 0);
        if (in_place) {
            put(&call, &b.recv, call.rank, call.rank, 0);
        }
        for (int i = 0; i < call.size && call.rank == how->root; i++) {
            put(&call, &b.expected, i, i, 0);
        }
        RUN(&run, Gather, gather, in_place ? MPI_IN_PLACE : b.send.start, how->count,
            how->layout->type, b.recv.start, how->count, how->layout->type, how->root, comm);
        buffers_compare(&call, &b);
    }
    buffers_free(&b);
}

static void check_scatter(MPI_Comm comm, const struct how *how)
{
    struct call call = call_begin(comm, how, "scatter");
    struct buffers b = buffers_create(&call, call.size, 1);
    struct run run = run_begin(how->form);
    bool in_place = how->in_place && call.rank == how->root;

    while (run_next(&run)) {
        buffers_next(&call, &b);
        for (int i = 0; i < call.size && call.rank == how->root; i++) {
            put(&call, &b.send, i, how->root, i);
            put(&call, &b.sent, i, how->root, i);
        }
        if (!in_place) {
            put(&call, &b.expected, 0, how->root, call.rank);
        }
        RUN(&run, Scatter, scatter, b.send.start, how->count, how->layout->type,
            in_place ? MPI_IN_PLACE : b.recv.start, how->count, how->layout->type, how->root, comm);
        buffers_compare(&call, &b);
    }
    buffers_free(&b);
}

static void check_allgather(MPI_Comm comm, const struct how *how)
{
    struct call call = call_begin(comm, how, "allgather");
    struct buffers b = buffers_create(&call, 1, call.size);
    struct run run = run_begin(how->form);

    while (run_next(&run)) {
        buffers_next(&call, &b);
        put(&call, &b.send, 0, call.rank, 0);
        put(&call, &b.sent, 0, call.rank, 0);
        if (how->in_place) {
            put(&call, &b.recv, call.rank, call.rank, 0);
        }
        for (int i = 0; i < call.size; i++) {
            put(&call, &b.expected, i, i, 0);
        }
        RUN(&run, Allgather, allgather, how->in_place ? MPI_IN_PLACE : b.send.start, how->count,
            how->layout->type, b.recv.start, how->count, how->layout->type, comm);
        buffers_compare(&call, &b);
    }
    buffers_free(&b);
}

static void check_alltoall(MPI_Comm comm, const struct how *how)
{
    struct call call = call_begin(comm, how, "alltoall");
    struct buffers b = buffers_create(&call, call.size, call.size);
    struct run run = run_begin(how->form);

    while (run_next(&run)) {
        buffers_next(&call, &b);
        for (int i = 0; i < call.size; i++) {
            put(&call, &b.send, i, call.rank, i);
            put(&call, &b.sent, i, call.rank, i);
            if (how->in_place) {
                put(&call, &b.recv, i, call.rank, i);
            }
            put(&call, &b.expected, i, i, call.rank);
        }
        RUN(&run, Alltoall, alltoall, how->in_place ? MPI_IN_PLACE : b.send.start, how->count,
            how->layout->type, b.recv.start, how->count, how->layout->type, comm);
        buffers_compare(&call, &b);
    }
    buffers_free(&b);
}

void check_data_movement(MPI_Comm comm, const struct how *how)
{
    check_bcast(comm, how);
    check_gather(comm, how);
    check_scatter(comm, how);
    check_allgather(comm, how);
    check_alltoall(comm, how);
}
