/*
 * Persistent all-to-alls of long blocks with many grants to save: from the second start on no rank sends a control message or
 * registers memory. Here all changes that the grants which stand could miss: other requests started between, in another order on each
 * rank; ranks that come late; memory that one rank alone has unmapped and mapped again, which no other is told of; a
 * gap that is not mapped; requests freed and made anew; and blocking calls of the same kinds. Every result is compared with what it
 * must be.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { RANKS = 16, LEAST = 17 * 1024, STARTS = 6, KINDS = 5, ROOM = 64, OPENED_LEAST = 8 };

static int rank, ranks;
static int shape; /* of the counts, the same on all ranks */
static unsigned long long stood;
static bool is_expected;

enum kind { ALLTOALL, ALLTOALLV, ALLTOALLW, ALLGATHER, ALLGATHERV };
static const char *const names[KINDS] = {"alltoall", "alltoallv", "alltoallw", "allgather",
                                         "allgatherv"};

/* One request with memory of its own. */
struct call {
    enum kind kind;
    bool is_blocking; /* called again and again; else a persistent request */
    MPI_Comm comm;
    size_t bytes; /* of each buffer */
    unsigned char *from, *to;
    int scounts[RANKS], sdispls[RANKS], rcounts[RANKS], rdispls[RANKS];
    MPI_Datatype types[RANKS];
    MPI_Request request;
};

/* What a rank sends to another: some nothing, some little. */
static int length(enum kind kind, int from, int to)
{
    static const int some[] = {0, 100, LEAST, 3 * LEAST, 40000, 5 * LEAST};

    switch (kind) {
    case ALLTOALLV:
        return (from + to + shape) % 13 != 12 ? LEAST + 1000 * ((3 * from + to + shape) % 5)
               : from < to                    ? 500
                                              : 0;
    case ALLTOALLW:
        return from == to ? some[from % 3] : some[2 + (from * 5 + to) % 4];
    case ALLGATHERV:
        return LEAST + 512 * (from + shape);
    default:
        return 2 * LEAST + 64 * shape;
    }
}

static unsigned char value(int from, int to, int at, int salt)
{
    return (unsigned char)(from * 31 + to * 17 + at + at / 251 + salt);
}

static void *map(void *at, size_t bytes)
{
    void *memory = mmap(at, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0), -1, 0);

    CHECK(memory != MAP_FAILED, "mmap of %zu bytes", bytes);
    return memory;
}

static bool is_gather(enum kind kind)
{
    return kind == ALLGATHER || kind == ALLGATHERV;
}

static void describe(struct call *call, enum kind kind)
{
    int sent = 0, got = 0;

    call->kind = kind;
    for (int i = 0; i < ranks; i++) {
        call->scounts[i] = length(kind, rank, i);
        call->rcounts[i] = length(kind, i, rank);
        call->sdispls[i] = is_gather(kind) ? 0 : sent;
        call->rdispls[i] = got;
        call->types[i] = MPI_BYTE;
        sent += call->scounts[i];
        got += call->rcounts[i];
    }
    call->bytes = (size_t)(sent > got ? sent : got) + ROOM;
    call->from = map(NULL, call->bytes);
    call->to = map(NULL, call->bytes);
}

#define CALL(Name, ...)                                                                            \
    (c->is_blocking ? MPI_##Name(__VA_ARGS__, c->comm)                                             \
                    : PERSISTENT(Name)(__VA_ARGS__, c->comm, MPI_INFO_NULL, &c->request))

/* Makes the request, or calls. */
static void make(struct call *c)
{
    switch (c->kind) {
    case ALLTOALL:
        CALL(Alltoall, c->from, c->scounts[0], MPI_BYTE, c->to, c->rcounts[0], MPI_BYTE);
        break;
    case ALLTOALLV:
        CALL(Alltoallv, c->from, c->scounts, c->sdispls, MPI_BYTE, c->to, c->rcounts, c->rdispls,
             MPI_BYTE);
        break;
    case ALLTOALLW:
        CALL(Alltoallw, c->from, c->scounts, c->sdispls, c->types, c->to, c->rcounts, c->rdispls,
             c->types);
        break;
    case ALLGATHER:
        CALL(Allgather, c->from, c->scounts[0], MPI_BYTE, c->to, c->rcounts[0], MPI_BYTE);
        break;
    case ALLGATHERV:
        CALL(Allgatherv, c->from, c->scounts[0], MPI_BYTE, c->to, c->rcounts, c->rdispls, MPI_BYTE);
        break;
    }
}

static struct call call_make(enum kind kind, bool is_blocking, MPI_Comm comm)
{
    struct call call = {.is_blocking = is_blocking, .comm = comm, .request = MPI_REQUEST_NULL};

    describe(&call, kind);
    if (!is_blocking) {
        make(&call);
    }
    return call;
}

static void call_free(struct call *call)
{
    if (!call->is_blocking) {
        MPI_Request_free(&call->request);
    }
    munmap(call->from, call->bytes);
    munmap(call->to, call->bytes);
}

static void fill(struct call *call, int salt)
{
    memset(call->to, 0xee, call->bytes - ROOM);
    for (int i = 0; i < (is_gather(call->kind) ? 1 : ranks); i++) {
        for (int at = 0; at < call->scounts[i]; at++) {
            call->from[call->sdispls[i] + at] =
                value(rank, is_gather(call->kind) ? 0 : i, at, salt);
        }
    }
}

static void compare(const struct call *call, int salt)
{
    for (int i = 0; i < ranks; i++) {
        for (int at = 0; at < call->rcounts[i]; at++) {
            unsigned char must = value(i, is_gather(call->kind) ? 0 : rank, at, salt);
            unsigned char is = call->to[call->rdispls[i] + at];

            CHECK(is == must, "%s %d: byte %d from rank %d is %d, not %d", names[call->kind], salt,
                  at, i, is, must);
        }
    }
}

static void run(struct call *call, int salt)
{
    fill(call, salt);
    if (call->is_blocking) {
        make(call);
    } else {
        MPI_Start(&call->request);
        MPI_Wait(&call->request, MPI_STATUS_IGNORE);
    }
    compare(call, salt);
}

/* A peer that sends so many short messages is offered a ring, by a control message. */
static void get_rings(void)
{
    char from[RANKS] = {0}, to[RANKS];
    int ones[RANKS], places[RANKS];
    MPI_Request request;

    for (int i = 0; i < ranks; i++) {
        ones[i] = 1;
        places[i] = i;
    }
    for (int i = 0; i < 64; i++) {
        MPI_Ialltoallv(from, ones, places, MPI_BYTE, to, ones, places, MPI_BYTE, MPI_COMM_WORLD,
                       &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Of all ranks, in the starts behind the first one. */
static void without_control(enum kind kind, bool is_blocking, MPI_Comm comm)
{
    struct call call = call_make(kind, is_blocking, comm);
    bool has_many = ranks >= OPENED_LEAST && !is_gather(kind);
    bool is_counted = is_expected && !is_blocking && has_many;
    struct counter control, registrations, standing;
    unsigned long long seen[3] = {0};

    run(&call, 0);
    if (is_counted) {
        standing = counter_begin("coll_ibshift_standing");
        control = counter_begin("coll_ibshift_control");
        registrations = counter_begin("coll_ibshift_registrations");
    }
    for (int i = 1; i <= STARTS; i++) {
        if ((i + rank) % 3 == 0) {
            usleep(300);
        }
        run(&call, i);
    }
    if (is_counted) {
        seen[2] = counter_end(&registrations);
        seen[1] = counter_end(&control);
        seen[0] = counter_end(&standing);
        MPI_Allreduce(MPI_IN_PLACE, seen, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, comm);
        if (rank == 0) {
            printf("%s: %d times: %llu grants stood, %llu control messages, %llu registrations\n",
                   names[kind], STARTS, seen[0], seen[1], seen[2]);
        }
        CHECK(seen[0] > 0 && seen[1] == 0 && seen[2] == 0,
              "%s: %llu grants stood, %llu control messages", names[kind], seen[0], seen[1]);
        stood += seen[0];
    }
    call_free(&call);
}

/* All at once, each rank in another order. */
static void in_disorder(MPI_Comm comm)
{
    struct call calls[2 * KINDS];

    for (int i = 0; i < 2 * KINDS; i++) {
        calls[i] = call_make((enum kind)(i % KINDS), false, comm);
    }
    for (int salt = 0; salt < STARTS; salt++) {
        for (int i = 0; i < 2 * KINDS; i++) {
            fill(&calls[i], salt + i);
        }
        for (int i = 0; i < 2 * KINDS; i++) {
            MPI_Start(&calls[(i * 3 + rank * (salt + 1)) % (2 * KINDS)].request);
        }
        for (int i = 0; i < 2 * KINDS; i++) {
            MPI_Wait(&calls[i].request, MPI_STATUS_IGNORE);
            compare(&calls[i], salt + i);
        }
    }
    for (int i = 0; i < 2 * KINDS; i++) {
        call_free(&calls[i]);
    }
}

/* On one rank alone, to the same address. */
static void mapped_again(enum kind kind, bool is_blocking, MPI_Comm comm)
{
    struct call call = call_make(kind, is_blocking, comm);

    for (int salt = 0; salt < 2 * STARTS; salt++) {
        if (salt % 3 == 1 && (salt / 3 + 1) % ranks == rank) {
            unsigned char **which = salt % 2 == 0 ? &call.from : &call.to;

            munmap(*which, call.bytes);
            *which = map(*which, call.bytes);
        }
        run(&call, salt);
    }
    call_free(&call);
}

/* Two blocks of what is sent are not mapped between the others, and have no bytes. */
static void with_gap(MPI_Comm comm)
{
    enum { PAGES = 1 << 16 };
    int counts[RANKS], rcounts[RANKS], displs[RANKS], rdispls[RANKS], gap = ranks / 2;
    unsigned char *from = map(NULL, (size_t)(ranks + 2) * PAGES);
    unsigned char *to = map(NULL, (size_t)ranks * PAGES);
    struct counter registrations;
    MPI_Request request;

    munmap(from + (size_t)gap * PAGES, 2 * (size_t)PAGES);
    for (int i = 0; i < ranks; i++) {
        counts[i] = rcounts[i] = PAGES;
        displs[i] = (i < gap ? i : i + 2) * PAGES;
        rdispls[i] = i * PAGES;
        memset(from + displs[i], rank + i, PAGES);
    }
    PERSISTENT(Alltoallv)
    (from, counts, displs, MPI_BYTE, to, rcounts, rdispls, MPI_BYTE, comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < STARTS; i++) {
        if (i == 1 && is_expected) {
            registrations = counter_begin("coll_ibshift_registrations");
        }
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int from_rank = 0; from_rank < ranks; from_rank++) {
            CHECK(to[from_rank * PAGES + i] == (unsigned char)(from_rank + rank), "with a gap");
        }
    }
    if (is_expected) {
        unsigned long long seen = counter_end(&registrations);

        CHECK(seen == 0, "with a gap: %llu registrations", seen);
    }
    MPI_Request_free(&request);
    munmap(from, (size_t)gap * PAGES);
    munmap(from + (size_t)(gap + 2) * PAGES, (size_t)(ranks - gap) * PAGES);
    munmap(to, (size_t)ranks * PAGES);
}

/* Some fit into no grant, some are made and never started. */
static void others(MPI_Comm comm)
{
    static char from[RANKS * 64], to[RANKS * 64];
    struct call never = call_make(ALLTOALLV, false, comm);
    MPI_Request request;

    PERSISTENT(Alltoall)(from, 64, MPI_BYTE, to, 64, MPI_BYTE, comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < STARTS; i++) {
        memset(from, i + rank, sizeof(from));
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(to[64 * (ranks - 1)] == (char)(i + ranks - 1), "alltoall of 64 bytes");
    }
    MPI_Request_free(&request);
    call_free(&never);
}

/* Blocking calls whose counts change, for all or for some, and that one rank alone calls with another buffer. */
static void changing(MPI_Comm comm)
{
    struct call calls[KINDS];

    for (int i = 0; i < KINDS; i++) {
        calls[i] = call_make((enum kind)i, true, comm);
    }
    for (int salt = 0; salt < 12 * KINDS; salt++) {
        struct call *call = &calls[salt / 4 % KINDS];

        if (salt % 4 == 0) {
            shape = salt / 8;
            munmap(call->from, call->bytes);
            munmap(call->to, call->bytes);
            describe(call, call->kind);
        } else if (salt % 4 == 3 && salt % ranks == rank) {
            call->to += 64; /* there is room */
        }
        run(call, salt);
        if (salt % 4 == 3 && salt % ranks == rank) {
            call->to -= 64;
        }
    }
    shape = 0;
    for (int i = 0; i < KINDS; i++) {
        call_free(&calls[i]);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    int provided;

    is_expected = getenv("EXPECT_REPEAT") != NULL;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks <= RANKS, "at most %d ranks", RANKS);
    get_rings();
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int is_blocking = 0; is_blocking < 2; is_blocking++) {
            without_control((enum kind)kind, is_blocking, comm);
            mapped_again((enum kind)kind, is_blocking, comm);
        }
        others(comm);
        with_gap(comm);
        changing(comm);
        MPI_Comm_free(&comm);
    }
    in_disorder(MPI_COMM_WORLD);
    in_disorder(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%llu long messages with a grant that stood\n", stood);
    }
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
