/*
 * Collectives on memory of a device, which host code cannot touch (stub_cuda.c): the results are
 * those on memory of the host. On all ranks, on some, for what is sent or for what comes. With the
 * argument "late" the driver is loaded when calls have tapes already, else before MPI_Init(). With
 * "host" there are calls on memory of the host alone, and the driver says how often it was asked.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int (*allocate)(uint64_t *address, size_t size);
static int (*copy)(uint64_t to, uint64_t from, size_t bytes);
static unsigned long (*copies)(void), (*asked)(void);

enum { MOST = 20000, RANKS = 8, WHERES = 5, TIMES = 3 };

static int rank, size;
static int *host[4], *device[2];
static MPI_Datatype pairs; /* every other integer */

struct call {
    const void *send;
    void *recv;
    int count;
};

static void do_alltoall(const struct call *c)
{
    MPI_Alltoall(c->send, c->count, MPI_INT, c->recv, c->count, MPI_INT, MPI_COMM_WORLD);
}

static void do_alltoall_gaps(const struct call *c)
{
    int n = c->count / 2;

    MPI_Alltoall(c->send, n, pairs, c->recv, n, pairs, MPI_COMM_WORLD);
}

static void do_alltoallv(const struct call *c)
{
    int counts[RANKS], displs[RANKS];

    for (int i = 0; i < size; i++) {
        counts[i] = i == rank ? c->count / 2 : c->count / 3;
        displs[i] = i * c->count;
    }
    MPI_Alltoallv(c->send, counts, displs, MPI_INT, c->recv, counts, displs, MPI_INT,
                  MPI_COMM_WORLD);
}

static void do_ialltoall(const struct call *c)
{
    MPI_Request request;

    MPI_Ialltoall(c->send, c->count, MPI_INT, c->recv, c->count, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void do_alltoall_in_place(const struct call *c)
{
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, c->recv, c->count, MPI_INT, MPI_COMM_WORLD);
}

static void do_allgather(const struct call *c)
{
    MPI_Allgather(c->send, c->count, MPI_INT, c->recv, c->count, MPI_INT, MPI_COMM_WORLD);
}

static void do_allgather_in_place(const struct call *c)
{
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, c->recv, c->count, MPI_INT, MPI_COMM_WORLD);
}

static void do_bcast(const struct call *c)
{
    MPI_Bcast(c->recv, c->count, MPI_INT, 1 % size, MPI_COMM_WORLD);
}

/* Only the type says where. */
static void do_bcast_bottom(const struct call *c)
{
    MPI_Datatype there;
    MPI_Aint place = (MPI_Aint)(intptr_t)c->recv;

    MPI_Type_create_hindexed(1, &c->count, &place, MPI_INT, &there);
    MPI_Type_commit(&there);
    MPI_Bcast(MPI_BOTTOM, 1, there, 1 % size, MPI_COMM_WORLD);
    MPI_Type_free(&there);
}

static void do_gather(const struct call *c)
{
    MPI_Gather(c->send, c->count, MPI_INT, c->recv, c->count, MPI_INT, 0, MPI_COMM_WORLD);
}

static void do_scatter(const struct call *c)
{
    MPI_Scatter(c->send, c->count, MPI_INT, c->recv, c->count, MPI_INT, 0, MPI_COMM_WORLD);
}

static void do_allreduce(const struct call *c)
{
    MPI_Allreduce(c->send, c->recv, c->count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void do_allreduce_in_place(const struct call *c)
{
    MPI_Allreduce(MPI_IN_PLACE, c->recv, c->count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void do_reduce(const struct call *c)
{
    MPI_Reduce(c->send, c->recv, c->count, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
}

static void do_reduce_scatter_block(const struct call *c)
{
    MPI_Reduce_scatter_block(c->send, c->recv, c->count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void do_scan(const struct call *c)
{
    MPI_Scan(c->send, c->recv, c->count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*run)(const struct call *c);
} calls[] = {
    {"alltoall", do_alltoall},
    {"alltoall of a type with gaps", do_alltoall_gaps},
    {"alltoallv", do_alltoallv},
    {"ialltoall", do_ialltoall},
    {"alltoall in place", do_alltoall_in_place},
    {"allgather", do_allgather},
    {"allgather in place", do_allgather_in_place},
    {"bcast", do_bcast},
    {"bcast from MPI_BOTTOM", do_bcast_bottom},
    {"gather", do_gather},
    {"scatter", do_scatter},
    {"allreduce", do_allreduce},
    {"allreduce in place", do_allreduce_in_place},
    {"reduce", do_reduce},
    {"reduce_scatter_block", do_reduce_scatter_block},
    {"scan", do_scan},
};

static void fill(int *at, int seed, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(*at); i++) {
        at[i] = (int)((unsigned)seed * 7919u + (unsigned)i * 31u + (unsigned)rank * 1000003u) >> 3;
    }
}

/* On memory of the host first, then where bits 0 and 1 of `where` say: what is sent, what comes. */
static int compare(size_t call, int count, int where, size_t bytes)
{
    int is_here = where < 4 || rank % 2 == 0, bits = where < 4 ? where : 3;
    struct call c = {host[0], host[1], count};

    fill(host[0], 1, bytes);
    fill(host[1], 2, bytes);
    calls[call].run(&c);
    fill(host[0], 1, bytes);
    fill(host[2], 2, bytes);
    copy((uintptr_t)device[0], (uintptr_t)host[0], bytes);
    copy((uintptr_t)device[1], (uintptr_t)host[2], bytes);
    c.send = is_here && (bits & 1) ? device[0] : host[0];
    c.recv = is_here && (bits & 2) ? device[1] : host[2];
    calls[call].run(&c);
    if (c.recv != host[2]) {
        copy((uintptr_t)host[2], (uintptr_t)c.recv, bytes);
    }
    if (memcmp(host[1], host[2], bytes) != 0) {
        fprintf(stderr, "device: rank %d: %s of %d integers, %s%s%s: the result differs\n", rank,
                calls[call].name, count, bits & 1 ? "sent from the device " : "",
                bits & 2 ? "received on the device" : "", where < 4 ? "" : ", on even ranks");
        return 1;
    }
    return 0;
}

static void load_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

    if (driver == NULL) {
        fprintf(stderr, "device: %s\n", dlerror());
        exit(1);
    }
    *(void **)&allocate = dlsym(driver, "cuMemAlloc");
    *(void **)&copy = dlsym(driver, "cuMemcpy");
    *(void **)&copies = dlsym(driver, "stub_cuda_copies");
    *(void **)&asked = dlsym(driver, "stub_cuda_asked");
}

static void on_the_host(void)
{
    for (size_t call = 0; call < sizeof(calls) / sizeof(calls[0]); call++) {
        for (int i = 0; i < 2 * TIMES; i++) {
            calls[call].run(&(struct call){host[0], host[1], 2});
        }
    }
}

/* These calls get tapes; the next communicator finds the driver. */
static void load_late(void)
{
    MPI_Comm next;

    on_the_host();
    load_driver();
    MPI_Comm_dup(MPI_COMM_WORLD, &next);
    MPI_Comm_free(&next);
}

int main(int argc, char **argv)
{
    static const int counts[] = {2, 100, MOST};
    int bad = 0, is_late = argc > 1 && strcmp(argv[1], "late") == 0;
    size_t bytes;

    if (!is_late) {
        load_driver();
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bytes = sizeof(int) * MOST * (size_t)size;
    MPI_Type_vector(1, 1, 2, MPI_INT, &pairs);
    MPI_Type_create_resized(pairs, 0, 2 * sizeof(int), &pairs);
    MPI_Type_commit(&pairs);
    for (int i = 0; i < 3; i++) {
        host[i] = calloc(1, bytes);
    }
    if (is_late) {
        load_late();
    } else if (argc > 1) {
        on_the_host();
        printf("device: rank %d: the driver was asked %lu times\n", rank, asked());
        MPI_Finalize();
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        uint64_t address = 0;

        if (size > RANKS || allocate(&address, bytes) != 0) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        device[i] = (int *)(uintptr_t)address;
    }
    for (size_t call = 0; call < sizeof(calls) / sizeof(calls[0]); call++) {
        for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
            for (int i = 0; i < TIMES * WHERES; i++) { /* the same call again: as tapes are made */
                bad += compare(call, counts[n], i / TIMES, bytes);
            }
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && bad == 0) {
        printf("device: %lu copies by the driver\n", copies());
    }
    MPI_Finalize();
    return bad != 0;
}
