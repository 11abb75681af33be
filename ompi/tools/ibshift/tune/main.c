/* `ibshift-tune`, what `ibshift tune` starts: an MPI program, one process a rank. */
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "choose/tuned.h"
#include "cli.h"
#include "tune/tune.h"

enum { REDUCED = 1 << 16, REPEATED = 50 };

static bool is_quiet;

static bool asks_version(int argc, char **argv)
{
    return argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0);
}

/* One line from one of the ranks. */
static bool is_first(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return rank == NULL || strcmp(rank, "0") == 0;
}

static void heard(enum tune_level level, int pass)
{
    if (!is_quiet) {
        fprintf(stderr, "ibshift tune: %s, pass %d of %d\n", tune_level_names[level], pass + 1,
                TUNE_PASSES);
    }
}

/* Those that do not measure leave the processors alone. */
static void meet(void)
{
    MPI_Request request;
    int is_done = 0;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!is_done) {
        MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        if (!is_done) {
            usleep(1000);
        }
    }
}

/* Of sums of doubles. */
static double reduce_rate(void)
{
    char *data = calloc(2, REDUCED);
    double least = INFINITY;

    for (int i = 0; data != NULL && i < REPEATED; i++) {
        double begin = MPI_Wtime();

        MPI_Reduce_local(data, data + REDUCED, REDUCED / (int)sizeof(double), MPI_DOUBLE, MPI_SUM);
        least = fmin(least, MPI_Wtime() - begin);
    }
    free(data);
    return isfinite(least) ? least * 1e6 / REDUCED : ibshift_model_typical.reduce_byte;
}

static void fill_made(const struct tune_wires *wires, struct ibshift_made *made)
{
    const struct tune_card *own = &wires->cards[0];
    time_t seconds = time(NULL);
    struct tm day;

    *made =
        ibshift_tuned_made(own->device[0] != '\0' ? own->device : "memory", own->firmware,
                           own->mbps, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
    snprintf(made->host, sizeof(made->host), "%s", own->hostname);
    if (gmtime_r(&seconds, &day) != NULL) {
        strftime(made->date, sizeof(made->date), "%Y-%m-%d %H:%M UTC", &day);
    }
}

/* All ranks call it: whether one of those that shall measure has no net; how says which, and why. */
static bool is_lacking(const struct tune_wires *wires, int level, bool is_measuring, char *how,
                       size_t size)
{
    int own = is_measuring && wires->engine[level] == NULL ? wires->rank : -1, rank;
    char why[TUNE_TEXT];

    MPI_Allreduce(&own, &rank, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank >= 0) {
        memcpy(why, wires->why[level], sizeof(why));
        MPI_Bcast(why, sizeof(why), MPI_CHAR, rank, MPI_COMM_WORLD);
        snprintf(how, size, "rank %d: %.200s", rank, why);
    }
    return rank >= 0;
}

/* All ranks call it; rank 0 and the partner work. */
static int measure_level(struct tune_wires *wires, enum tune_level level, double seconds,
                         struct tune_level_found *found)
{
    int partner = tune_wires_partner(wires, level, found->how, sizeof(found->how)), rc = 0;
    bool is_measuring = wires->rank == 0 || wires->rank == partner;

    if (partner < 0 || is_lacking(wires, level, is_measuring, found->how, sizeof(found->how))) {
        return 0;
    }
    if (is_measuring) {
        snprintf(found->how, sizeof(found->how), "ranks 0 and %d, hosts %.60s and %.60s", partner,
                 wires->cards[0].hostname, wires->cards[partner].hostname);
        found->is_there = true;
        found->is_moved = level == TUNE_NODE || ibshift_verbs_is_software(wires->verbs);
        found->eager = tune_wires_eager(wires, level);
        rc = tune_measure(wires, level, partner, seconds, heard, &found->points);
    }
    meet();
    return rc;
}

static int tune(const struct tune_request *request)
{
    static struct tune_found found;
    struct tune_wires wires = {.verbs = NULL};
    struct ibshift_model local;
    int rc = tune_wires_open(&wires), place = CLI_OK;

    if (rc == 0 && wires.rank == 0) {
        local = (struct ibshift_model){
            .copy_byte = tune_copy_rate(), .reduce_byte = reduce_rate(), .free_messages = 1};
        fill_made(&wires, &found.made);
        place = tune_check_place(&request->target, &found.made);
    }
    meet();
    MPI_Bcast(&place, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rc == 0 && place != CLI_OK) {
        tune_wires_close(&wires);
        return place;
    }
    for (int level = 0; level < TUNE_LEVELS && rc == 0; level++) {
        rc = measure_level(&wires, (enum tune_level)level, request->seconds, &found.level[level]);
    }
    if (rc != 0) {
        fprintf(stderr, "ibshift tune: rank %d: %s\n", wires.rank, strerror(-rc));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    rc = wires.rank == 0 ? tune_judge(&request->target, &found, &local) : CLI_OK;
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    tune_wires_close(&wires);
    return rc;
}

int main(int argc, char **argv)
{
    struct tune_request request;
    bool helped = false;
    int rc;

    if (asks_version(argc, argv)) {
        puts("ibshift " IBSHIFT_VERSION);
        return CLI_OK;
    }
    if (!is_first() && freopen("/dev/null", "w", stdout) != NULL) {
        int null = open("/dev/null", O_WRONLY), own = dup(STDERR_FILENO);

        dup2(null, STDERR_FILENO); /* wrong options are said once */
        rc = tune_parse(argc, argv, false, &request, &helped);
        dup2(own, STDERR_FILENO);
        close(null);
        close(own);
    } else {
        rc = tune_parse(argc, argv, true, &request, &helped);
    }
    if (rc != CLI_OK || helped) {
        return rc;
    }
    is_quiet = request.is_quiet;
    /* The component would have nets of its own beside ours, and a process has one place in shared
     * memory: its record locks tell no two of its segments apart. */
    setenv("OMPI_MCA_coll_ibshift_native", "0", 1);
    MPI_Init(&argc, &argv);
    rc = tune(&request);
    MPI_Finalize();
    return rc;
}
