#include "colls.h"

#include <stdio.h>
#include <stdlib.h>

/* reduce, allreduce, scan, exscan, reduce_scatter, reduce_scatter_block. */

struct call {
    const struct how *how;
    const struct layout *layout;
    int rank, size;
    unsigned salt;
    char what[96];
    struct buffer send, recv, expected;
};

static struct call call_begin(MPI_Comm comm, const struct how *how, const char *name, int sends,
                              int receives)
{
    struct call call = {.how = how, .layout = how->layout};

    MPI_Comm_rank(comm, &call.rank);
    MPI_Comm_size(comm, &call.size);
    snprintf(call.what, sizeof(call.what), "%s %s, %s, %s, count %d, root %d%s",
             form_names[how->form], name, how->layout->name,
             how->op == MPI_SUM ? "sum" : "user operator", how->count, how->root,
             how->in_place ? ", in place" : "");
    call.send = buffer_create(call.layout, (size_t)sends);
    call.recv = buffer_create(call.layout, (size_t)(how->in_place ? sends : receives));
    call.expected = buffer_create(call.layout, (size_t)(how->in_place ? sends : receives));
    return call;
}

static void call_end(struct call *call)
{
    buffer_free(&call->send);
    buffer_free(&call->recv);
    buffer_free(&call->expected);
}

static int reduced(const struct call *call, int ranks, size_t index)
{
    int result = value_of(0, index, call->salt);

    for (int i = 1; i < ranks; i++) {
        int next = value_of(i, index, call->salt);
        result = call->how->op == MPI_SUM ? result + next : compose(result, next);
    }
    return result;
}

/* Elements from first on: ranks = 0 stands for the own contribution. */
static void put(const struct call *call, struct buffer *buffer, size_t first, size_t count,
                int ranks)
{
    for (size_t i = 0; i < count; i++) {
        for (int word = 0; word < call->layout->words; word++) {
            size_t index = (first + i) * 2 + (size_t)word;
            *buffer_at(buffer, call->layout, i, word) =
                ranks > 0 ? reduced(call, ranks, index) : value_of(call->rank, index, call->salt);
        }
    }
}

/* The buffers before a call; what arrives is put into "expected" by the caller. */
static const void *call_next(struct call *call, size_t count, bool in_place)
{
    call->salt = next_salt();
    buffer_clear(&call->recv);
    buffer_clear(&call->expected);
    put(call, in_place ? &call->recv : &call->send, 0, count, 0);
    return in_place ? MPI_IN_PLACE : call->send.start;
}

static void check_reduce(MPI_Comm comm, const struct how *how)
{
    struct call call = call_begin(comm, how, "reduce", how->count, how->count);
    struct run run = run_begin(how->form);
    bool is_root = call.rank == how->root;

    while (run_next(&run)) {
        const void *from = call_next(&call, (size_t)how->count, how->in_place && is_root);
        if (is_root) {
            put(&call, &call.expected, 0, (size_t)how->count, call.size);
        }
        RUN(&run, Reduce, reduce, from, call.recv.start, how->count, call.layout->type, how->op,
            how->root, comm);
        buffer_compare(&call.recv, &call.expected, call.what);
    }
    call_end(&call);
}

static void check_allreduce(MPI_Comm comm, const struct how *how)
{
    struct call call = call_begin(comm, how, "allreduce", how->count, how->count);
    struct run run = run_begin(how->form);

    while (run_next(&run)) {
        const void *from = call_next(&call, (size_t)how->count, how->in_place);
        put(&call, &call.expected, 0, (size_t)how->count, call.size);
        RUN(&run, Allreduce, allreduce, from, call.recv.start, how->count, call.layout->type,
            how->op, comm);
        buffer_compare(&call.recv, &call.expected, call.what);
    }
    call_end(&call);
}

static void check_scan(MPI_Comm comm, const struct how *how)
{
    struct call call = call_begin(comm, how, "scan", how->count, how->count);
    struct run run = run_begin(how->form);

    while (run_next(&run)) {
        const void *from = call_next(&call, (size_t)how->count, how->in_place);
        put(&call, &call.expected, 0, (size_t)how->count, call.rank + 1);
        RUN(&run, Scan, scan, from, call.recv.start, how->count, call.layout->type, how->op, comm);
        buffer_compare(&call.recv, &call.expected, call.what);
    }
    call_end(&call);
}

/* Rank 0 gets nothing that is defined. */
static void check_exscan(MPI_Comm comm, const struct how *how)
{
    struct call call = call_begin(comm, how, "exscan", how->count, how->count);
    struct run run = run_begin(how->form);

    while (run_next(&run)) {
        const void *from = call_next(&call, (size_t)how->count, how->in_place);
        put(&call, &call.expected, 0, (size_t)how->count, call.rank);
        RUN(&run, Exscan, exscan, from, call.recv.start, how->count, call.layout->type, how->op,
            comm);
        if (call.rank > 0) {
            buffer_compare(&call.recv, &call.expected, call.what);
        }
    }
    call_end(&call);
}

static void check_reduce_scatter_block(MPI_Comm comm, const struct how *how)
{
    int size, rank;
    struct call call;
    struct run run = run_begin(how->form);
    size_t count = (size_t)how->count;

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    call = call_begin(comm, how, "reduce_scatter_block", how->count * size, how->count);
    while (run_next(&run)) {
        const void *from = call_next(&call, count * (size_t)size, how->in_place);
        put(&call, &call.expected, count * (size_t)rank, count, size);
        RUN(&run, Reduce_scatter_block, reduce_scatter_block, from, call.recv.start, how->count,
            call.layout->type, how->op, comm);
        if (!how->in_place) { /* in place the rest of the buffer is scratch */
            buffer_compare(&call.recv, &call.expected, call.what);
        }
        for (size_t i = 0; i < count; i++) {
            CHECK(*buffer_at(&call.recv, call.layout, i, 0) ==
                      *buffer_at(&call.expected, call.layout, i, 0),
                  "%s: element %zu differs", call.what, i);
        }
    }
    call_end(&call);
}

static void check_reduce_scatter(MPI_Comm comm, const struct how *how)
{
    int size, rank, *counts, total = 0, before = 0;
    struct call call;
    struct run run = run_begin(how->form);

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    counts = calloc((size_t)size, sizeof(int));
    CHECK(counts != NULL, "no memory");
    for (int i = 0; i < size; i++) {
        counts[i] = i % 3 == 1 || how->count == 0 ? 0 : how->count + i % 2;
        before += i < rank ? counts[i] : 0;
        total += counts[i];
    }
    call = call_begin(comm, how, "reduce_scatter", total, counts[rank]);
    while (run_next(&run)) {
        const void *from = call_next(&call, (size_t)total, how->in_place);
        put(&call, &call.expected, (size_t)before, (size_t)counts[rank], size);
        RUN(&run, Reduce_scatter, reduce_scatter, from, call.recv.start, counts, call.layout->type,
            how->op, comm);
        for (int i = 0; i < counts[rank]; i++) {
            CHECK(*buffer_at(&call.recv, call.layout, (size_t)i, 0) ==
                      *buffer_at(&call.expected, call.layout, (size_t)i, 0),
                  "%s: element %d differs", call.what, i);
        }
    }
    free(counts);
    call_end(&call);
}

void check_reductions(MPI_Comm comm, const struct how *how)
{
    check_reduce(comm, how);
    check_allreduce(comm, how);
    check_scan(comm, how);
    check_exscan(comm, how);
    check_reduce_scatter(comm, how);
    check_reduce_scatter_block(comm, how);
}
