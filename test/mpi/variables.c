/*
 * The variables of MPI_T: what a collective ran, and that its messages and bytes are those of the
 * plan, which is emitted here again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/alg.h"
#include "check.h"

enum { MOST = 64, LONGEST = 30000, ELEMENT = sizeof(int) };

static int from[LONGEST * 8], to[LONGEST * 8];

/* One collective with n elements: of a block, or of the vector. */
struct call {
    enum ibshift_collective collective;
    bool is_vector;
    void (*run)(int n, MPI_Comm comm);
};

static void barrier(int n, MPI_Comm comm)
{
    (void)n;
    MPI_Barrier(comm);
}

static void bcast(int n, MPI_Comm comm)
{
    MPI_Bcast(from, n, MPI_INT, 1, comm);
}

static void gather(int n, MPI_Comm comm)
{
    MPI_Gather(from, n, MPI_INT, to, n, MPI_INT, 1, comm);
}

static void allgather(int n, MPI_Comm comm)
{
    MPI_Allgather(from, n, MPI_INT, to, n, MPI_INT, comm);
}

static void alltoall(int n, MPI_Comm comm)
{
    MPI_Alltoall(from, n, MPI_INT, to, n, MPI_INT, comm);
}

static void allreduce(int n, MPI_Comm comm)
{
    MPI_Allreduce(from, to, n, MPI_INT, MPI_SUM, comm);
}

static void scan(int n, MPI_Comm comm)
{
    MPI_Scan(from, to, n, MPI_INT, MPI_SUM, comm);
}

static const struct call calls[] = {
    {IBSHIFT_BARRIER, false, barrier},   {IBSHIFT_BCAST, true, bcast},
    {IBSHIFT_GATHER, false, gather},     {IBSHIFT_ALLGATHER, false, allgather},
    {IBSHIFT_ALLTOALL, false, alltoall}, {IBSHIFT_ALLREDUCE, true, allreduce},
    {IBSHIFT_SCAN, true, scan},
};

/* A variable by its name, bound and started. */
struct variable {
    MPI_T_pvar_handle handle;
    char help[512];
    bool is_continuous;
};

static MPI_T_pvar_session session;

static int index_of(const char *name, int *class, char *help, int size, int *continuous)
{
    char text[128];
    int count;

    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count; i++) {
        int length = sizeof(text), help_length = size, verbosity, bind, readonly, atomic;
        MPI_Datatype type;
        MPI_T_enum names;

        if (MPI_T_pvar_get_info(i, text, &length, &verbosity, class, &type, &names, help,
                                &help_length, &bind, &readonly, continuous,
                                &atomic) == MPI_SUCCESS &&
            strcmp(text, name) == 0) {
            CHECK(help[0] != '\0', "%s has no description", name);
            return i;
        }
    }
    CHECK(false, "there is no variable %s", name);
}

static struct variable variable_open(const char *name, MPI_Comm comm)
{
    struct variable v;
    char full[128];
    int count, class, continuous, index;

    snprintf(full, sizeof(full), "coll_ibshift_%s", name);
    index = index_of(full, &class, v.help, sizeof(v.help), &continuous);
    CHECK(MPI_T_pvar_handle_alloc(session, index, bound_to(comm), &v.handle, &count) ==
                  MPI_SUCCESS &&
              count == 1,
          "%s cannot be bound", full);
    v.is_continuous = continuous;
    if (!continuous) {
        CHECK(MPI_T_pvar_start(session, v.handle) == MPI_SUCCESS, "%s does not start", full);
    }
    return v;
}

static void variable_read(struct variable *v, void *value)
{
    CHECK(MPI_T_pvar_read(session, v->handle, value) == MPI_SUCCESS, "a variable cannot be read");
}

static void variable_close(struct variable *v)
{
    MPI_T_pvar_handle_free(session, &v->handle);
}

static unsigned long long counted(struct variable *v)
{
    unsigned long long value;

    variable_read(v, &value);
    variable_close(v);
    return value;
}

/* The name behind " NUMBER: " in the description; to the next comma. */
static void name_of(const struct variable *v, int value, char *name, int length)
{
    char mark[16];
    const char *at;

    snprintf(mark, sizeof(mark), " %d: ", value);
    at = strstr(v->help, mark);
    CHECK(at != NULL, "the description has no name for %d: %s", value, v->help);
    at += strlen(mark);
    snprintf(name, (size_t)length, "%.*s", (int)strcspn(at, ","), at);
}

/* What the communicator ran, as the variables say. */
static const struct ibshift_alg *chosen(enum ibshift_collective collective, MPI_Comm comm,
                                        struct ibshift_plan *plan, char *name, int length)
{
    const char *what = ibshift_collective_name(collective);
    char text[64];
    struct variable v;
    int value;

    snprintf(text, sizeof(text), "%s_chosen", what);
    v = variable_open(text, comm);
    variable_read(&v, &value);
    name_of(&v, value, name, length);
    variable_close(&v);
    snprintf(text, sizeof(text), "%s_chosen_radix", what);
    v = variable_open(text, comm);
    variable_read(&v, &plan->radix);
    variable_close(&v);
    snprintf(text, sizeof(text), "%s_chosen_segments", what);
    v = variable_open(text, comm);
    variable_read(&v, &plan->segments);
    variable_close(&v);
    return ibshift_alg_find(collective, name);
}

static uint64_t block_bytes(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                            bool is_vector, int n, uint32_t block)
{
    bool is_cut_anywhere = alg->collective == IBSHIFT_BCAST; /* not at whole elements */
    uint64_t unit = is_cut_anywhere ? 1 : ELEMENT, offset, length = (uint64_t)n * ELEMENT / unit;

    if (is_vector) {
        ibshift_piece(length, ibshift_alg_pieces(alg, plan), block, &offset, &length);
    }
    return length * unit;
}

struct traffic {
    unsigned long long messages, bytes;
};

static void add_send(struct traffic *t, const struct call *call, const struct ibshift_alg *alg,
                     const struct ibshift_plan *plan, int n, uint32_t rank,
                     const struct ibshift_step *step)
{
    uint64_t bytes = 0;

    for (uint32_t b = step->first; b < step->first + step->count; b++) {
        uint32_t block = step->buf == IBSHIFT_TMP ? ibshift_alg_tmp_block(alg, plan, rank, b) : b;

        bytes += block_bytes(alg, plan, call->is_vector, n, block);
    }
    t->messages += bytes > 0 || step->count == 0;
    t->bytes += bytes;
}

/* What the plan has this rank send. */
static struct traffic planned(const struct call *call, const struct ibshift_alg *alg,
                              const struct ibshift_plan *plan, int n, uint32_t rank)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    struct traffic t = {0, 0};

    for (uint32_t round = 0; round < alg->rounds(plan, rank); round++) {
        uint32_t count = alg->emit(plan, rank, round, steps);

        for (uint32_t i = 0; i < count; i++) {
            if (steps[i].kind == IBSHIFT_STEP_SEND) {
                add_send(&t, call, alg, plan, n, rank, &steps[i]);
            }
        }
    }
    return t;
}

static void check_call(const struct call *call, int n, MPI_Comm comm)
{
    static const char *const names[] = {"messages", "bytes", "eager", "ring", "rendezvous"};
    struct ibshift_plan plan = {.root = 1, .commutative = true};
    const char *what = ibshift_collective_name(call->collective);
    const struct ibshift_alg *alg;
    unsigned long long got[5];
    struct variable v[5];
    struct traffic wanted;
    char name[64] = "";
    int rank, ranks;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    plan.ranks = (uint32_t)ranks;
    for (int i = 0; i < 5; i++) {
        v[i] = variable_open(names[i], MPI_COMM_NULL);
    }
    call->run(n, comm);
    for (int i = 0; i < 5; i++) {
        got[i] = counted(&v[i]);
    }
    alg = chosen(call->collective, comm, &plan, name, sizeof(name));
    if (alg == NULL && n == 0) { /* Open MPI does not ask for a collective of nothing */
        CHECK(got[0] == 0, "%s of nothing: %llu messages", what, got[0]);
        return;
    }
    CHECK(alg != NULL, "%s of %d: '%s' is no algorithm", what, n, name);
    wanted = planned(call, alg, &plan, n, (uint32_t)rank);
    CHECK(got[0] == wanted.messages && got[1] == wanted.bytes,
          "%s %s of %d: %llu messages, %llu bytes; the plan has %llu and %llu", what, name, n,
          got[0], got[1], wanted.messages, wanted.bytes);
    CHECK(got[2] + got[3] + got[4] == got[0],
          "%s %s of %d: %llu eager, %llu in rings, %llu rendezvous are not %llu messages", what,
          name, n, got[2], got[3], got[4], got[0]);
}

/* All sizes: nothing, eager, and rendezvous. */
static void check_calls(MPI_Comm comm)
{
    static const int sizes[] = {0, 1, 300, 1025, LONGEST};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            check_call(&calls[i], sizes[k], comm);
        }
    }
}

static void check_connections(void)
{
    struct variable v = variable_open("connections", MPI_COMM_NULL);
    struct variable level = variable_open("registered_bytes", MPI_COMM_NULL);
    struct variable hits = variable_open("registration_hits", MPI_COMM_NULL);
    unsigned long long bytes;

    for (int i = 0; i < 3; i++) {
        alltoall(LONGEST, MPI_COMM_WORLD);
    }
    variable_read(&level, &bytes);
    variable_close(&level);
    CHECK(bytes > 0, "nothing is registered");
    CHECK(counted(&v) == 0, "an all-to-all after an all-to-all connects again");
    CHECK(counted(&hits) > 0, "the third all-to-all of the same buffers registers them again");
}

/* An algorithm asked for between two calls runs in the next. */
static void check_control(MPI_Comm comm)
{
    static const char *const wanted[] = {"bruck", "pairwise"};
    int index, count, value, ranks;
    MPI_T_cvar_handle handle;

    MPI_Comm_size(comm, &ranks);
    CHECK(MPI_T_cvar_get_index("coll_ibshift_alltoall_algorithm", &index) == MPI_SUCCESS,
          "there is no control variable of the algorithm");
    CHECK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS, "no handle");
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        struct ibshift_plan plan = {.ranks = (uint32_t)ranks};
        char name[64] = "";

        value = ibshift_alg_place(ibshift_alg_find(IBSHIFT_ALLTOALL, wanted[i]));
        CHECK(MPI_T_cvar_write(handle, &value) == MPI_SUCCESS, "it cannot be written");
        check_call(&calls[4], 300, comm);
        (void)chosen(IBSHIFT_ALLTOALL, comm, &plan, name, sizeof(name));
        CHECK(strcmp(name, wanted[i]) == 0, "%s ran, not %s", name, wanted[i]);
    }
    value = 0;
    CHECK(MPI_T_cvar_write(handle, &value) == MPI_SUCCESS, "it cannot be written");
    MPI_T_cvar_handle_free(&handle);
}

/* A communicator of one rank runs nothing here: its variables say so. */
static void check_self(void)
{
    struct ibshift_plan plan;
    char name[64] = "";

    MPI_Barrier(MPI_COMM_SELF);
    CHECK(chosen(IBSHIFT_BARRIER, MPI_COMM_SELF, &plan, name, sizeof(name)) == NULL &&
              strcmp(name, "none") == 0,
          "MPI_COMM_SELF ran '%s'", name);
}

int main(int argc, char **argv)
{
    int provided, rank, ranks;
    MPI_Comm half;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks >= 4 && ranks <= 8, "4 to 8 ranks");
    MPI_T_pvar_session_create(&session);
    check_calls(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    check_calls(half);
    MPI_Comm_free(&half);
    check_connections();
    check_control(MPI_COMM_WORLD);
    check_self();
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize(); /* Open MPI 4.1.4 crashes when it comes after MPI_Finalize */
    MPI_Finalize();
    return 0;
}
