/*
 * Neighborhood collectives on grids and random graphs, against what MPI's rules say: each rank knows the whole topology, and what
 * comes in each place. Grids have borders, and dimensions of one and two, where both neighbours are one rank; graphs have
 * double edges, edges to oneself, ranks without neighbours. Blocks have gaps, unlike types of one signature on both sides, and
 * sizes from nothing to long, anew in each call.
 *     neighbor [SEED]
 * Who has no neighbours passes no arrays, either, where Open MPI's check of arguments takes that; without that check
 * (mpi_param_check 0), IBSHIFT_TEST_UNCHECKED=1 has it so in all calls.
 * libnbc, which may be beneath, takes messages of such dimensions for one another: IBSHIFT_TEST_NATIVE=1 wants them right, too.
 */

#include "check.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, SENTINEL = 0xee, TYPES = 3, LONG = 6000, GRAPHS = 6 };

static MPI_Datatype types[TYPES]; /* of one int, and gaps */
static int extents[TYPES] = {4, 12, 20};
static int world_rank, world_size;
static bool is_native, is_unchecked;

struct list {
    int count, rank[MOST];
};

/* Of one rank; slot[i]: the place in the sender's list of what comes in place i. */
struct topology {
    char name[64];
    struct list in, out;
    int slot[MOST];
    bool is_even; /* both neighbours of a dimension may be one rank */
    int rank;     /* in its communicator */
};

static uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b << 32 ^ b) * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 31;
}

static int below(uint64_t *state, int bound)
{
    *state = mixed(*state, 77);
    return (int)(*state >> 33) % bound;
}

/* Elements of what a rank sends in that place. */
static int count_of(int rank, int slot, uint64_t call)
{
    uint64_t x = mixed(call, (uint64_t)(rank * 1000 + slot));

    return x % 4 == 0 ? 0 : x % 31 == 1 ? LONG : (int)(x % 40);
}

static int word_of(int rank, int slot, int i, int round)
{
    return (int)mixed((uint64_t)rank << 20 | (uint64_t)slot, (uint64_t)(i * 8 + round));
}

/* A buffer as each form of a collective describes it. */
struct side {
    int blocks, counts[MOST], displs[MOST], kinds[MOST];
    MPI_Aint places[MOST];
    MPI_Datatype of[MOST];
    size_t size;
    char *memory;
    bool is_null; /* has no blocks, and no arrays */
};

/* The last block first, with a gap before each, unless they have no places of their own. */
static struct side side_make(int blocks, const int *counts, const int *kinds, bool has_places)
{
    struct side side = {.blocks = blocks};
    size_t at = 0;

    for (int k = 0; k < blocks; k++) {
        int i = has_places ? blocks - 1 - k : k, extent = extents[kinds[i]];

        at += has_places ? (size_t)extent : 0;
        at = has_places ? (at + (size_t)extent - 1) / (size_t)extent * (size_t)extent : at;
        side.counts[i] = counts[i];
        side.kinds[i] = kinds[i];
        side.of[i] = types[kinds[i]];
        side.places[i] = (MPI_Aint)at;
        side.displs[i] = (int)(at / (size_t)extent);
        at += (size_t)(counts[i] * extent);
    }
    side.size = at + 64;
    side.memory = malloc(side.size);
    CHECK(side.memory != NULL, "no memory");
    memset(side.memory, SENTINEL, side.size);
    return side;
}

static void put(struct side *side, int block, int rank, int slot, int round)
{
    for (int i = 0; i < side->counts[block]; i++) {
        int word = word_of(rank, slot, i, round);

        memcpy(side->memory + side->places[block] + i * extents[side->kinds[block]], &word,
               sizeof(word));
    }
}

/* As a call gets them; NULL: a program that keeps its neighbours in vectors has no array of none. */
struct arrays {
    const int *counts, *displs;
    const MPI_Aint *places;
    const MPI_Datatype *of;
};

static struct arrays arrays_of(const struct side *side)
{
    struct arrays none = {NULL}, all = {side->counts, side->displs, side->places, side->of};

    return side->is_null ? none : all;
}

enum which { ALLGATHER, ALLTOALL, ALLGATHERV, ALLTOALLV, ALLTOALLW, WHICH };
static const char *const names[WHICH] = {"allgather", "alltoall", "allgatherv", "alltoallv",
                                         "alltoallw"};

static void call(struct run *run, enum which which, struct side *s, struct side *r, MPI_Comm comm)
{
    struct arrays from = arrays_of(s), to = arrays_of(r);

    switch (which) {
    case ALLGATHER:
        RUN(run, Neighbor_allgather, neighbor_allgather, s->memory, s->counts[0], s->of[0],
            r->memory, r->counts[0], r->of[0], comm);
        break;
    case ALLTOALL:
        RUN(run, Neighbor_alltoall, neighbor_alltoall, s->memory, s->counts[0], s->of[0], r->memory,
            r->counts[0], r->of[0], comm);
        break;
    case ALLGATHERV:
        RUN(run, Neighbor_allgatherv, neighbor_allgatherv, s->memory, s->counts[0], s->of[0],
            r->memory, to.counts, to.displs, r->of[0], comm);
        break;
    case ALLTOALLV:
        RUN(run, Neighbor_alltoallv, neighbor_alltoallv, s->memory, from.counts, from.displs,
            s->of[0], r->memory, to.counts, to.displs, r->of[0], comm);
        break;
    default:
        RUN(run, Neighbor_alltoallw, neighbor_alltoallw, s->memory, from.counts, from.places,
            from.of, r->memory, to.counts, to.places, to.of, comm);
    }
}

static void compare(const struct side *got, const struct side *wanted, const char *what,
                    const struct topology *t, enum form form, uint64_t seed)
{
    for (size_t i = 0; i < got->size; i++) {
        CHECK(got->memory[i] == wanted->memory[i],
              "%s neighbor_%s on a %s, call %#llx: byte %zu is %#x, not %#x", form_names[form],
              what, t->name, (unsigned long long)seed, i, (unsigned char)got->memory[i],
              (unsigned char)wanted->memory[i]);
    }
}

static void check_one(MPI_Comm comm, const struct topology *t, enum which which, enum form form,
                      uint64_t seed)
{
    bool gathers = which == ALLGATHER || which == ALLGATHERV;
    bool has_counts = which >= ALLGATHERV;
    bool may_be_null = is_unchecked || (which >= ALLTOALLV && form == FORM_BLOCKING);
    int sends = gathers ? 1 : t->out.count;
    int scounts[MOST] = {0}, rcounts[MOST] = {0}, skinds[MOST], rkinds[MOST];
    struct side send, recv, wanted;
    struct run run = run_begin(form);

    for (int i = 0; i < MOST; i++) {
        int who = which == ALLTOALLW ? i : 0;

        skinds[i] = (int)(mixed(seed, (uint64_t)(t->rank * 2 + who * 64)) % TYPES);
        rkinds[i] = (int)(mixed(seed, (uint64_t)(t->rank * 2 + 1 + who * 64)) % TYPES);
    }
    for (int i = 0; i < MOST; i++) {
        int from = i < t->in.count ? t->in.rank[i] : MPI_PROC_NULL;

        scounts[i] = has_counts ? count_of(t->rank, gathers ? 0 : i, seed) : count_of(0, 0, seed);
        rcounts[i] = !has_counts             ? scounts[0]
                     : from == MPI_PROC_NULL ? 3
                                             : count_of(from, gathers ? 0 : t->slot[i], seed);
    }
    send = side_make(sends, scounts, skinds, has_counts && !gathers);
    recv = side_make(t->in.count, rcounts, rkinds, has_counts);
    wanted = side_make(t->in.count, rcounts, rkinds, has_counts);
    if (t->in.count == 0) { /* what MPI reads all the same */
        recv.counts[0] = rcounts[0];
        recv.of[0] = types[0];
        recv.is_null = may_be_null && mixed(seed, (uint64_t)t->rank) & 1;
    }
    if (sends == 0) {
        send.counts[0] = scounts[0];
        send.of[0] = types[0];
        send.is_null = may_be_null && mixed(seed, (uint64_t)t->rank + 1) & 1;
    }
    while (run_next(&run)) {
        for (int i = 0; i < sends; i++) {
            put(&send, i, t->rank, i, run.round);
        }
        memset(recv.memory, SENTINEL, recv.size);
        for (int i = 0; i < t->in.count; i++) {
            if (t->in.rank[i] != MPI_PROC_NULL) {
                put(&wanted, i, t->in.rank[i], gathers ? 0 : t->slot[i], run.round);
            }
        }
        call(&run, which, &send, &recv, comm);
        compare(&recv, &wanted, names[which], t, form, seed);
    }
    free(send.memory);
    free(recv.memory);
    free(wanted.memory);
}

/* The first arguments come back at last, where a call may be remembered by them. */
static void check_all(MPI_Comm comm, const struct topology *t, uint64_t seed)
{
    for (int form = 0; form < FORM_COUNT; form++) {
        for (int which = 0; which < WHICH; which++) {
            for (int i = 0; i < 5; i++) {
                uint64_t call_seed = mixed(seed, (uint64_t)(which * 10 + (i < 3 ? 0 : i)));

                if (form == FORM_BLOCKING || is_native || !t->is_even) {
                    check_one(comm, t, (enum which)which, (enum form)form, call_seed);
                }
            }
            check_one(comm, t, (enum which)which, FORM_BLOCKING, mixed(seed, (uint64_t)which * 10));
        }
    }
}

static void check_grid(int dimensions, const int *dims, const int *periods, uint64_t seed)
{
    struct topology t = {.in.count = 2 * dimensions, .out.count = 2 * dimensions};
    int length = snprintf(t.name, sizeof(t.name), "grid");
    MPI_Comm comm;

    MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &comm);
    if (comm == MPI_COMM_NULL) {
        return;
    }
    MPI_Comm_rank(comm, &t.rank);
    for (int d = 0; d < dimensions; d++) {
        int down, up, self = MPI_PROC_NULL;

        length += snprintf(t.name + length, sizeof(t.name) - (size_t)length, " %d%s", dims[d],
                           periods[d] ? "p" : "");
        MPI_Cart_shift(comm, d, 1, &down, &up);
        if (dims[d] == 1) { /* 4.1 says otherwise there */
            self = periods[d] ? t.rank : MPI_PROC_NULL;
            down = up = self;
        }
        t.in.rank[2 * d] = t.out.rank[2 * d] = down;
        t.in.rank[2 * d + 1] = t.out.rank[2 * d + 1] = up;
        t.slot[2 * d] = 2 * d + 1;
        t.slot[2 * d + 1] = 2 * d;
        t.is_even |= periods[d] && dims[d] <= 2;
    }
    check_all(comm, &t, seed);
    MPI_Comm_free(&comm);
}

static void check_grids(uint64_t seed)
{
    for (int bits = 0; bits < 8; bits++) {
        int periods[3] = {bits & 1, bits >> 1 & 1, bits >> 2 & 1}, dims[3] = {0, 0, 0};
        int flat[3] = {1, world_size, 1};

        MPI_Dims_create(world_size, 3, dims);
        check_grid(3, dims, periods, mixed(seed, (uint64_t)bits));
        check_grid(3, flat, periods, mixed(seed, (uint64_t)bits + 8));
        if (bits < 4) {
            check_grid(2, (int[2]){2, world_size / 2}, periods, mixed(seed, (uint64_t)bits + 16));
        }
    }
}

static void shuffle(struct list *list, uint64_t *state)
{
    for (int i = list->count - 1; i > 0; i--) {
        int j = below(state, i + 1), rank = list->rank[i];

        list->rank[i] = list->rank[j];
        list->rank[j] = rank;
    }
}

static void add(struct list *list, int rank)
{
    CHECK(list->count < MOST, "too many edges");
    list->rank[list->count++] = rank;
}

static int times(const struct list *list, int end, int rank)
{
    int count = 0;

    for (int i = 0; i < end; i++) {
        count += list->rank[i] == rank;
    }
    return count;
}

/* The messages of one pair meet in the order of both lists. */
static void match(struct topology *t, const struct list *outs)
{
    for (int i = 0; i < t->in.count; i++) {
        const struct list *sent = &outs[t->in.rank[i]];
        int before = times(&t->in, i, t->in.rank[i]), slot = 0;

        while (sent->rank[slot] != t->rank || times(sent, slot, t->rank) != before) {
            slot++;
        }
        t->slot[i] = slot;
    }
}

/* Some ranks have no neighbours, or none on one side. */
static void draw(struct list *ins, struct list *outs, bool is_symmetric, uint64_t *state)
{
    int edges = below(state, 3 * world_size + 1), quiet = below(state, world_size);

    memset(ins, 0, (size_t)world_size * sizeof(*ins));
    memset(outs, 0, (size_t)world_size * sizeof(*outs));
    for (int i = 0; i < edges; i++) {
        int from = below(state, world_size),
            to = below(state, 3) == 0 ? from : below(state, world_size);

        if (from != quiet && (to != quiet || !is_symmetric) && outs[from].count < MOST / 4 &&
            ins[to].count < MOST / 4) {
            add(&outs[from], to);
            add(&ins[to], from);
            if (is_symmetric && from != to) {
                add(&outs[to], from);
                add(&ins[from], to);
            }
        }
    }
    for (int i = 0; i < world_size; i++) {
        shuffle(&outs[i], state);
        shuffle(&ins[i], state);
        if (is_symmetric) {
            ins[i] = outs[i];
        }
    }
}

static MPI_Comm make_graph(const struct list *outs)
{
    int index[MOST], edges[MOST * MOST], top = 0;
    MPI_Comm comm;

    for (int i = 0; i < world_size; i++) {
        for (int k = 0; k < outs[i].count; k++) {
            edges[top++] = outs[i].rank[k];
        }
        index[i] = top;
    }
    MPI_Graph_create(MPI_COMM_WORLD, world_size, index, edges, 0, &comm);
    return comm;
}

static MPI_Comm make_distributed(const struct topology *t, bool is_weighted)
{
    int weights[MOST];
    MPI_Comm comm;

    for (int i = 0; i < MOST; i++) {
        weights[i] = 1 + i % 3;
    }
    MPI_Dist_graph_create_adjacent(
        MPI_COMM_WORLD, t->in.count, t->in.rank, is_weighted ? weights : MPI_UNWEIGHTED,
        t->out.count, t->out.rank, is_weighted ? weights : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

static void check_graph(bool is_distributed, bool is_weighted, uint64_t seed)
{
    struct list ins[MOST], outs[MOST];
    struct topology t = {.rank = world_rank};
    uint64_t state = seed;
    MPI_Comm comm;

    draw(ins, outs, !is_distributed, &state);
    t.in = ins[world_rank];
    t.out = outs[world_rank];
    match(&t, outs);
    snprintf(t.name, sizeof(t.name), "%sgraph of seed %#llx", is_distributed ? "distributed " : "",
             (unsigned long long)seed);
    comm = is_distributed ? make_distributed(&t, is_weighted) : make_graph(outs);
    check_all(comm, &t, seed);
    MPI_Comm_free(&comm);
}

/* From 0 to all others, at last of other types than the same call had before. */
static void check_unlike_types(MPI_Comm comm, const struct topology *t)
{
    int counts[MOST], from[MOST], to[1] = {-1};
    MPI_Aint places[MOST] = {0};
    MPI_Datatype of[MOST];

    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < MOST; i++) {
            counts[i] = 1;
            from[i] = word_of(0, 0, 0, round) & SHRT_MAX;
            of[i] = round < 5 ? MPI_INT : MPI_SHORT;
        }
        to[0] = 0;
        if (t->out.count > 0) {
            MPI_Neighbor_alltoallw(from, counts, places, of, NULL, NULL, NULL, NULL, comm);
        } else {
            MPI_Neighbor_alltoallw(NULL, NULL, NULL, NULL, to, counts, places, of, comm);
            CHECK(to[0] == from[0], "types of call %d: %#x, not %#x", round, to[0], from[0]);
        }
    }
}

/* All others have their only neighbour in 0: it sends to them, or they to it. */
static void check_star(bool is_outwards, uint64_t seed)
{
    struct topology t = {.rank = world_rank};
    struct list *own = is_outwards == (world_rank == 0) ? &t.out : &t.in;
    MPI_Comm comm;

    if (world_rank == 0) {
        for (int i = 1; i < world_size; i++) {
            add(own, i);
        }
    } else {
        add(own, 0);
        t.slot[0] = world_rank - 1;
    }
    snprintf(t.name, sizeof(t.name), "star %s", is_outwards ? "outwards" : "inwards");
    comm = make_distributed(&t, false);
    check_all(comm, &t, seed);
    if (is_outwards) {
        check_unlike_types(comm, &t);
    }
    MPI_Comm_free(&comm);
}

static void make_types(void)
{
    for (int i = 0; i < TYPES; i++) {
        MPI_Type_create_resized(MPI_INT, 0, extents[i], &types[i]);
        MPI_Type_commit(&types[i]);
    }
    MPI_Type_free(&types[0]);
    types[0] = MPI_INT;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    CHECK(world_size <= MOST / 4, "at most %d ranks", MOST / 4);
    is_native = getenv("IBSHIFT_TEST_NATIVE") != NULL;
    is_unchecked = getenv("IBSHIFT_TEST_UNCHECKED") != NULL;
    make_types();
    check_grids(seed);
    for (int i = 0; i < GRAPHS; i++) {
        check_graph(i % 3 != 0, i % 3 == 1, mixed(seed, (uint64_t)i + 100));
    }
    check_star(true, mixed(seed, 200));
    check_star(false, mixed(seed, 201));
    MPI_Type_free(&types[1]);
    MPI_Type_free(&types[2]);
    MPI_Finalize();
    return 0;
}
