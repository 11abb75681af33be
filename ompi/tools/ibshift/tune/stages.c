/*
 * In stage s the rank at place i of the file's order sends one message to the place i + s, through
 * the component's own alltoallv, and takes one from i - s. What the message should take is the time of one
 * alone, times the flows that the file's routes put on its dearest link. A link whose flows doubled
 * since the file was made takes twice as long in the stages that it is in.
 *
 * Half way round each two places send to each other. That stage is cut into two, as such a pair now and then
 * takes twice as long on the software HCA, whatever the routes.
 */
#include "tune/tune.h"

#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "fabric/paths/paths.h"
#include "fabric/read/read.h"
#include "net/verbs/blob.h"
#include "net/verbs/verbs.h"

enum { PASSES = 3, ROUNDS = 4, NAMED = 3 };

#define SLOW 1.5 /* times what it should take; a flow more on a link that had one makes it 2 */

struct stages {
    const char *file;
    int rank, ranks, place; /* place: of this rank */
    int *rank_at;           /* place -> rank */
    /* of rank 0: */
    struct ibshift_fabric *fabric;
    struct ibshift_paths *paths; /* members are places */
    float *expected;             /* [row * ranks + place]: of the message that it sends, or 0 */
    double *time;                /* the same: of the call, in us */
};

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    if (memory == NULL) {
        fputs("ibshift tune: no memory\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

/* ---- who is where ---- */

static uint64_t own_guid(void)
{
    const char *device = getenv("OMPI_MCA_coll_ibshift_device");
    struct ibshift_verbs_options options = {
        .ports = device != NULL ? device : "", .max_ports = 1, .gid_index = -1, .fork = -1};
    struct ibshift_verbs *verbs;
    struct ibshift_verbs_blob blob;
    char why[256];
    const void *card;
    uint64_t guid = 0;
    size_t size;

    if (ibshift_verbs_open(&options, &verbs, why, sizeof(why)) != 0) {
        fprintf(stderr, "ibshift tune: %s\n", why);
        return 0;
    }
    card = ibshift_verbs_card(verbs, &size);
    if (ibshift_verbs_blob_decode(card, size, &blob) == 0) {
        for (int i = 8; i < 16; i++) {
            guid = guid << 8 | blob.address[0].gid[i];
        }
    }
    ibshift_verbs_close(verbs);
    return guid;
}

struct seat {
    uint32_t position, host;
    int rank;
};

static int compare_seats(const void *a, const void *b)
{
    const struct seat *x = a, *y = b;

    return (x->position > y->position) - (x->position < y->position);
}

static uint32_t position_of(const struct ibshift_fabric *f, uint32_t host)
{
    for (uint32_t i = 0; i < f->order_count; i++) {
        if (f->order[i] == host) {
            return i;
        }
    }
    return f->order_count + host;
}

static int find_seats(struct stages *s, const uint64_t *guids, struct seat *seats,
                      struct ibshift_error *err)
{
    for (int r = 0; r < s->ranks; r++) {
        char name[24];
        int64_t host;

        snprintf(name, sizeof(name), "0x%" PRIx64, guids[r]);
        host = guids[r] == 0 ? -ENODEV : ibshift_fabric_find_host(s->fabric, name);
        if (host < 0) {
            return guids[r] == 0 ? ibshift_fail(err, -ENODEV, "rank %d has no adapter", r)
                                 : ibshift_fail(err, -ENOENT, "%s: rank %d's port %s is not in it",
                                                s->file, r, name);
        }
        seats[r] = (struct seat){position_of(s->fabric, (uint32_t)host), (uint32_t)host, r};
    }
    qsort(seats, (size_t)s->ranks, sizeof(*seats), compare_seats);
    for (int i = 1; i < s->ranks; i++) {
        if (seats[i].host == seats[i - 1].host) {
            return ibshift_fail(err, -EINVAL, "ranks %d and %d are on one host: start one on each",
                                seats[i - 1].rank, seats[i].rank);
        }
    }
    return 0;
}

/* Rows are the stages 1 .. ranks - 1, and with an even number of ranks the other half of the middle
 * one; row 0 is not used. */
static int rows_of(const struct stages *s)
{
    return s->ranks + (s->ranks % 2 == 0);
}

static int stage_of(const struct stages *s, int row)
{
    return row == s->ranks ? row / 2 : row;
}

static bool is_sending(const struct stages *s, int row, int place)
{
    return 2 * stage_of(s, row) != s->ranks || (2 * place < s->ranks) == (row < s->ranks);
}

static int target_of(const struct stages *s, int row, int place)
{
    return (place + stage_of(s, row)) % s->ranks;
}

static void expect_row(const struct stages *s, int row, uint32_t *flows)
{
    const struct ibshift_paths *p = s->paths;

    memset(flows, 0, p->links * sizeof(*flows));
    for (int i = 0; i < s->ranks; i++) {
        const uint32_t *link =
            ibshift_paths_links(p, (uint32_t)i, (uint32_t)target_of(s, row, i), 0);

        for (uint32_t k = 0; k < p->width && link[k] != IBSHIFT_NO_LINK; k++) {
            flows[link[k]] += is_sending(s, row, i);
        }
    }
    for (int i = 0; i < s->ranks; i++) {
        uint32_t to = (uint32_t)target_of(s, row, i);
        const uint32_t *link = ibshift_paths_links(p, (uint32_t)i, to, 0);
        float cost = p->host_cost[i] > p->host_cost[to] ? p->host_cost[i] : p->host_cost[to];

        for (uint32_t k = 0; k < p->width && link[k] != IBSHIFT_NO_LINK; k++) {
            float own = (float)flows[link[k]] * p->cost[link[k]];

            cost = own > cost ? own : cost;
        }
        s->expected[row * s->ranks + i] = is_sending(s, row, i) ? cost : 0;
    }
}

static void expect(struct stages *s)
{
    size_t count = (size_t)rows_of(s) * (size_t)s->ranks;
    uint32_t *flows = zeroed(s->paths->links, sizeof(*flows));

    s->expected = zeroed(count, sizeof(*s->expected));
    s->time = zeroed(count, sizeof(*s->time));
    for (int row = 1; row < rows_of(s); row++) {
        expect_row(s, row, flows);
    }
    free(flows);
}

/* Rank 0: the fabric, and who sits where. */
static int look(struct stages *s, const uint64_t *guids, struct ibshift_error *err)
{
    struct seat *seats = zeroed((size_t)s->ranks, sizeof(*seats));
    uint32_t *hosts = zeroed((size_t)s->ranks, sizeof(*hosts));
    struct ibshift_warnings warnings = {.count = 0};
    int rc = ibshift_fabric_load(s->file, NULL, &s->fabric, &warnings, err);

    if (rc == 0 && s->fabric->lft == NULL) {
        rc = ibshift_fail(err, -ENODATA, "%s has no forwarding tables", s->file);
    }
    rc = rc == 0 ? find_seats(s, guids, seats, err) : rc;
    for (int i = 0; rc == 0 && i < s->ranks; i++) {
        s->rank_at[i] = seats[i].rank;
        hosts[i] = seats[i].host;
    }
    rc = rc == 0 ? ibshift_paths_build_base(s->fabric, hosts, (uint32_t)s->ranks, &s->paths, err)
                 : rc;
    if (rc == 0) {
        expect(s);
    }
    free(seats);
    free(hosts);
    return rc;
}

/* All ranks: CLI_OK, or another code once rank 0 has said why. */
static int meet(struct stages *s)
{
    uint64_t guid = own_guid(), *guids = zeroed((size_t)s->ranks, sizeof(*guids));
    struct ibshift_error err;
    int rc;

    MPI_Gather(&guid, 1, MPI_UINT64_T, guids, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    rc = s->rank != 0 ? 0
         : s->ranks < 3
             ? ibshift_fail(
                   &err, -EINVAL,
                   "needs at least three ranks, one on each host: mpirun --map-by ppr:1:node")
             : look(s, guids, &err);
    free(guids);
    if (rc != 0) {
        cli_error("tune", "%s", err.text);
    }
    rc = rc == 0 ? CLI_OK : rc == -ENODEV ? CLI_UNFIT : CLI_USAGE;
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(s->rank_at, s->ranks, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < s->ranks; i++) {
        s->place = s->rank_at[i] == s->rank ? i : s->place;
    }
    return rc;
}

/* ---- what they take ---- */

/* Least times of a few passes, those of former rounds too; times[row] of this rank, in us. The
 * first pass of all connects and does not count. */
static void measure(const struct stages *s, int bytes, char *data, const uint8_t *wanted,
                    bool is_first, double *times)
{
    int *counts = zeroed((size_t)s->ranks * 3, sizeof(*counts));
    int *from = counts + s->ranks, *at = from + s->ranks;

    for (int pass = is_first ? -1 : 0; pass < PASSES; pass++) {
        for (int row = 1; row < rows_of(s); row++) {
            int before = (s->place + s->ranks - stage_of(s, row)) % s->ranks;
            int to = s->rank_at[target_of(s, row, s->place)], of = s->rank_at[before];
            double time;

            if (!wanted[row]) {
                continue;
            }
            counts[to] = is_sending(s, row, s->place) ? bytes : 0;
            from[of] = is_sending(s, row, before) ? bytes : 0;
            MPI_Barrier(MPI_COMM_WORLD);
            time = MPI_Wtime();
            MPI_Alltoallv(data, counts, at, MPI_CHAR, data + bytes, from, at, MPI_CHAR,
                          MPI_COMM_WORLD);
            time = (MPI_Wtime() - time) * 1e6;
            counts[to] = from[of] = 0;
            times[row] = (is_first && pass <= 0) || time < times[row] ? time : times[row];
        }
    }
    free(counts);
}

/* ---- what is said ---- */

/* What a message alone takes. Of most messages nothing is wrong, but of many may be. */
static double unit_of(const struct stages *s)
{
    double *ratios = zeroed((size_t)(rows_of(s) * s->ranks), sizeof(*ratios)), unit;
    int filled = 0;

    for (int i = s->ranks; i < rows_of(s) * s->ranks; i++) {
        if (s->expected[i] > 0) {
            ratios[filled++] = s->time[i] / s->expected[i];
        }
    }
    qsort(ratios, (size_t)filled, sizeof(*ratios), tune_by_value);
    unit = ratios[filled / 4];
    free(ratios);
    return unit;
}

/* A late message keeps both its ends. 0: none is sent. */
static double lateness(const struct stages *s, int row, int place, double unit)
{
    int at = row * s->ranks;
    double own = s->time[at + place], other = s->time[at + target_of(s, row, place)];

    return s->expected[at + place] > 0
               ? (own < other ? own : other) / (unit * s->expected[at + place])
               : 0;
}

/* The place whose message is the latest of the stage. */
static int latest_of(const struct stages *s, int row, double unit)
{
    int latest = 0;

    for (int i = 1; i < s->ranks; i++) {
        latest = lateness(s, row, i, unit) > lateness(s, row, latest, unit) ? i : latest;
    }
    return latest;
}

struct blame {
    uint32_t slow, all;
};

/* The links of the file that most late messages were to take. */
static void name_links(const struct stages *s, struct blame *blames)
{
    for (int named = 0; named < NAMED; named++) {
        uint32_t worst = 0;
        char text[256];

        for (uint32_t i = 1; i < s->paths->links; i++) {
            worst = blames[i].slow > blames[worst].slow ? i : worst;
        }
        if (blames[worst].slow == 0) {
            return;
        }
        ibshift_link_name(s->fabric, s->paths->link[worst], text, sizeof(text));
        printf("link %s: %u of %u messages that use it according to the file were late\n", text,
               blames[worst].slow, blames[worst].all);
        blames[worst].slow = 0;
    }
}

static void blame_links(const struct stages *s, double unit)
{
    struct blame *blames = zeroed(s->paths->links, sizeof(*blames));

    for (int row = 1; row < rows_of(s); row++) {
        for (int i = 0; i < s->ranks; i++) {
            const uint32_t *link =
                ibshift_paths_links(s->paths, (uint32_t)i, (uint32_t)target_of(s, row, i), 0);

            for (uint32_t k = 0; k < s->paths->width && link[k] != IBSHIFT_NO_LINK; k++) {
                blames[link[k]].slow += lateness(s, row, i, unit) > SLOW;
                blames[link[k]].all += is_sending(s, row, i);
            }
        }
    }
    name_links(s, blames);
    free(blames);
}

static int judge(const struct stages *s, size_t bytes)
{
    double unit = unit_of(s);
    int late = 0;

    for (int row = 1; row < rows_of(s); row++) {
        int latest = latest_of(s, row, unit);
        double times = lateness(s, row, latest, unit);

        if (times > SLOW) {
            const uint32_t *host = s->paths->host;

            printf("stage %d: %.1f times what the file's routes give, as %s to %s\n",
                   stage_of(s, row), times, ibshift_host_name(s->fabric, host[latest]),
                   ibshift_host_name(s->fabric, host[target_of(s, row, latest)]));
            late++;
        }
    }
    printf("%d of %d stages of %d hosts, %zu bytes each, took longer than %s predicts\n", late,
           rows_of(s) - 1, s->ranks, bytes, s->file);
    if (late != 0) {
        blame_links(s, unit);
        printf("fabric file is stale: run ibshift fabric publish; or other jobs used these links "
               "in all of the %d passes\n",
               PASSES * ROUNDS);
    }
    return late != 0 ? CLI_FAILED : CLI_OK;
}

/* Rows come by rank and are put by place. */
static void collect(struct stages *s, const double *times)
{
    int rows = rows_of(s);
    double *all = zeroed((size_t)rows * (size_t)s->ranks, sizeof(*all));

    MPI_Gather(times, rows, MPI_DOUBLE, all, rows, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int place = 0; s->rank == 0 && place < s->ranks; place++) {
        for (int row = 1; row < rows; row++) {
            s->time[row * s->ranks + place] = all[s->rank_at[place] * rows + row];
        }
    }
    free(all);
}

/* All stages, then again those that were late: what else went on passes, routes stay. */
static void measure_all(struct stages *s, int bytes, char *data, double *times)
{
    uint8_t *wanted = zeroed((size_t)rows_of(s), 1);
    double unit;

    memset(wanted, 1, (size_t)rows_of(s));
    for (int round = 0; round < ROUNDS; round++) {
        measure(s, bytes, data, wanted, round == 0, times);
        collect(s, times);
        unit = s->rank == 0 ? unit_of(s) : 0;
        for (int row = 1; s->rank == 0 && row < rows_of(s); row++) {
            wanted[row] = lateness(s, row, latest_of(s, row, unit), unit) > SLOW;
        }
        MPI_Bcast(wanted, rows_of(s), MPI_UINT8_T, 0, MPI_COMM_WORLD);
    }
    free(wanted);
}

/* Each rank sends a byte to the next. */
static void pass_round(const struct stages *s, char *data)
{
    int *counts = zeroed((size_t)s->ranks * 3, sizeof(*counts));
    int *from = counts + s->ranks, *at = from + s->ranks;

    counts[(s->rank + 1) % s->ranks] = from[(s->rank + s->ranks - 1) % s->ranks] = 1;
    MPI_Alltoallv(data, counts, at, MPI_CHAR, data + 1, from, at, MPI_CHAR, MPI_COMM_WORLD);
    free(counts);
}

/* Whether the component counts an alltoallv as its own. */
static bool is_counted(const struct stages *s, char *data)
{
    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_handle handle;
    unsigned long long calls = 0;
    int index, count;
    bool is_there = MPI_T_pvar_get_index("coll_ibshift_collectives", MPI_T_PVAR_CLASS_COUNTER,
                                         &index) == MPI_SUCCESS &&
                    MPI_T_pvar_session_create(&session) == MPI_SUCCESS &&
                    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS;

    if (is_there) {
        (void)MPI_T_pvar_start(session, handle);
    }
    pass_round(s, data);
    if (is_there) {
        (void)MPI_T_pvar_read(session, handle, &calls);
    }
    if (session != MPI_T_PVAR_SESSION_NULL) {
        (void)MPI_T_pvar_session_free(&session); /* and its handles */
    }
    return calls != 0;
}

/* The times of another component's all-to-all say nothing of the file's order. */
static int look_who_runs(const struct stages *s, char *data)
{
    int rc, provided;

    (void)MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    rc = is_counted(s, data) || s->rank != 0
             ? CLI_OK
             : cli_error("tune", "MPI_Alltoallv is not ibshift's in this job: leave the MCA "
                                 "parameter coll out, or set it to ibshift,basic");
    (void)MPI_T_finalize();
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return rc;
}

int tune_stages(const char *file, size_t bytes)
{
    struct stages s = {.file = file};
    char *data = zeroed(2, bytes);
    double *times;
    int rc;

    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    s.rank_at = zeroed((size_t)s.ranks, sizeof(*s.rank_at));
    times = zeroed((size_t)rows_of(&s), sizeof(*times));
    rc = meet(&s);
    rc = rc == CLI_OK ? look_who_runs(&s, data) : rc;
    if (rc == CLI_OK) {
        measure_all(&s, (int)bytes, data, times);
        rc = s.rank == 0 ? judge(&s, bytes) : CLI_OK;
        MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    ibshift_paths_free(s.paths);
    ibshift_fabric_free(s.fabric);
    free(s.expected);
    free(s.time);
    free(s.rank_at);
    free(times);
    free(data);
    return rc;
}
