/* What libibshift says of wrong arguments, unlike ranks, unlike calls and ranks that die; one case a run. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/processes.h"

static void take_last(void *context, const void *left, void *right, size_t elements)
{
}

static int open_with(struct process *process, const char *options, char *error, size_t size)
{
    const struct ibs_setup setup = {.api = IBS_API,
                                    .rank = process->rank,
                                    .ranks = process->ranks,
                                    .allgather = processes_allgather,
                                    .context = process,
                                    .options = options};

    error[0] = '\0';
    return ibs_open(&setup, &process->job, error, size);
}

static int expect(const struct process *process, const char *what, int rc, int wanted)
{
    return rc == wanted ? 0 : processes_fail(process, what, rc);
}

/* The words are in the text, and none of Open MPI's. */
static int says(const struct process *process, const char *text, const char *words)
{
    static const char *const mpi[] = {"MCA",       "coll_ibshift_", "ommunicator",
                                      "ompi_info", "----",          "each step"};

    for (size_t i = 0; i < sizeof(mpi) / sizeof(mpi[0]); i++) {
        if (strstr(text, mpi[i]) != NULL) {
            fprintf(stderr, "\"%s\" in: %s\n", mpi[i], text);
            return processes_fail(process, "words of Open MPI", 0);
        }
    }
    if (strstr(text, words) != NULL) {
        return 0;
    }
    fprintf(stderr, "no \"%s\" in: %s\n", words, text);
    return processes_fail(process, "other words are expected", 0);
}

static int setups(struct process *process)
{
    struct ibs_setup setup = {.api = IBS_API, .rank = 1, .ranks = 1};
    struct ibs_job *job;
    char error[256];
    int bad = expect(process, "no setup", ibs_open(NULL, &job, error, sizeof(error)), -EINVAL);

    bad |= expect(process, "no allgather", ibs_open(&setup, &job, error, sizeof(error)), -EINVAL);
    setup.allgather = processes_allgather;
    setup.context = process;
    bad |= expect(process, "rank 1 of 1", ibs_open(&setup, &job, error, sizeof(error)), -EINVAL);
    bad |= says(process, error, "ibs_setup.rank");
    setup.rank = 0;
    setup.api = 0;
    bad |= expect(process, "no api", ibs_open(&setup, &job, error, sizeof(error)), -EINVAL);
    bad |= says(process, error, "another version");
    setup.api = IBS_API;
    bad |= expect(process, "no job", ibs_open(&setup, NULL, error, sizeof(error)), -EINVAL);
    bad |= says(process, error, "a place for the job");
    bad |= expect(process, "no job, no words", ibs_open(&setup, NULL, NULL, 0), -EINVAL);
    bad |=
        expect(process, "no value", open_with(process, "deadline", error, sizeof(error)), -EINVAL);
    bad |= says(process, error, "name=value");
    bad |= expect(process, "a wrong name", open_with(process, "deadlines=3", error, sizeof(error)),
                  -EINVAL);
    bad |= says(process, error, "\"deadline\"");
    bad |= expect(process, "one of MPI's", open_with(process, "trace=stderr", error, sizeof(error)),
                  -EINVAL);
    bad |= says(process, error, "trace is for Open MPI alone");
    bad |= expect(process, "out of bounds", open_with(process, "window=-3", error, sizeof(error)),
                  -EINVAL);
    bad |= expect(process, "no choice",
                  open_with(process, "bcast_algorithm=best", error, sizeof(error)), -EINVAL);
    bad |=
        expect(process, "a right one",
               open_with(process, ";bcast_algorithm=chain;;deadline=1k;", error, sizeof(error)), 0);
    bad |= expect(process, "a second job", open_with(process, NULL, error, sizeof(error)), -EBUSY);
    bad |= expect(process, "the end", ibs_close(process->job), 0);
    bad |= expect(process, "a second end", ibs_close(process->job), -EINVAL);
    bad |= expect(process, "a second job after the first",
                  open_with(process, NULL, error, sizeof(error)), 0);
    return bad | expect(process, "its end", ibs_close(process->job), 0);
}

/* One rank's options are wrong, or unlike: all of them hear of it. */
static int wrong_on_one(struct process *process)
{
    char error[512];
    int rc = open_with(process, process->rank == 1 ? "ports=0" : NULL, error, sizeof(error));

    return expect(process, "wrong on one rank", rc, -EINVAL) |
           says(process, error, process->rank == 1 ? "ports" : "rank 1 on");
}

/* One process cannot even begin: the others do not wait for it. */
static int wrong_setup(struct process *process)
{
    struct ibs_setup setup = {.api = process->rank == 1 ? IBS_API + 1 : IBS_API,
                              .rank = process->rank,
                              .ranks = process->ranks,
                              .allgather = processes_allgather,
                              .context = process};
    char error[256];
    int bad =
        expect(process, "one api", ibs_open(&setup, &process->job, error, sizeof(error)), -EINVAL) |
        says(process, error, process->rank == 1 ? "another version" : "rank 1 on");

    setup.api = IBS_API;
    bad |= expect(process, "one without a place",
                  ibs_open(&setup, process->rank == 2 ? NULL : &process->job, error, sizeof(error)),
                  -EINVAL) |
           says(process, error, process->rank == 2 ? "a place for the job" : "rank 2 on");
    setup.ranks += process->rank == 1;
    bad |= expect(process, "one of 4", ibs_open(&setup, &process->job, NULL, 0), -EINVAL);
    return bad;
}

/* The program has made a mistake with ranks. */
static int twins(struct process *process)
{
    struct ibs_setup setup = {.api = IBS_API,
                              .rank = process->rank == 2 ? 0 : process->rank,
                              .ranks = process->ranks,
                              .allgather = processes_allgather,
                              .context = process};
    char error[256];
    int bad =
        expect(process, "twins", ibs_open(&setup, &process->job, error, sizeof(error)), -EINVAL) |
        says(process, error, "two processes are rank 0");

    setup.rank = process->ranks - 1 - process->rank;
    return bad |
           expect(process, "mixed up", ibs_open(&setup, &process->job, error, sizeof(error)),
                  -EINVAL) |
           says(process, error, "the bytes of rank 2 at the place of rank 0");
}

static int unlike(struct process *process)
{
    char error[512];
    int rc =
        open_with(process, process->rank == 1 ? "eager_limit=1000" : NULL, error, sizeof(error));

    return expect(process, "unlike options", rc, -EHOSTUNREACH) |
           says(process, error, "its option eager_limit");
}

static int groups(struct process *process)
{
    const uint32_t twice[] = {0, 1, 0}, beyond[] = {0, process->ranks},
                   others[] = {process->rank == 0}, own[] = {process->rank};
    struct ibs_group *all, *alone, *none;
    int bad = 0, x = 5, y = 0;

    bad |= expect(process, "a number too high",
                  ibs_group_create(process->job, IBS_GROUPS, NULL, 0, &none), -EINVAL);
    bad |=
        expect(process, "one twice", ibs_group_create(process->job, 1, twice, 3, &none), -EINVAL);
    bad |=
        expect(process, "one beyond", ibs_group_create(process->job, 1, beyond, 2, &none), -EINVAL);
    bad |= expect(process, "others", ibs_group_create(process->job, 1, others, 1, &none), -EINVAL);
    bad |= expect(process, "nowhere", ibs_group_create(process->job, 1, NULL, 0, NULL), -EINVAL);
    bad |= says(process, ibs_group_error(NULL), "");
    bad |= expect(process, "nobody", ibs_group_create(process->job, 1, own, 0, &none), -EINVAL);
    bad |= expect(process, "all", ibs_group_create(process->job, 1, NULL, 0, &all), 0);
    bad |= expect(process, "its number again", ibs_group_create(process->job, 1, NULL, 0, &none),
                  -EEXIST);
    bad |= expect(process, "alone", ibs_group_create(process->job, 2, own, 1, &alone), 0);
    bad |= expect(process, "an end too early", ibs_close(process->job), -EBUSY);
    bad |=
        expect(process, "alltoall alone",
               ibs_run(alone,
                       &(struct ibs_call){
                           .collective = IBS_ALLTOALL, .send = &x, .recv = &y, .count = sizeof(x)}),
               0);
    bad |= expect(process, "its data", y, 5);
    bad |= expect(process, "alone freed", ibs_group_free(alone), 0);
    bad |= expect(process, "no group", ibs_group_free(NULL), -EINVAL);
    bad |= expect(process, "all freed", ibs_group_free(all), 0);
    return bad | expect(process, "the end", ibs_close(process->job), 0);
}

static int calls(struct process *process)
{
    size_t counts[RANKS_MAX] = {1, 1, 1}, huge[RANKS_MAX] = {SIZE_MAX, SIZE_MAX};
    ptrdiff_t places[RANKS_MAX] = {0, 1, 2}, gaps[RANKS_MAX] = {0, 2, 4};
    char from[64] = "", to[64] = "";
    const struct ibs_call wrong[] = {
        {.collective = (enum ibs_collective)99},
        {.collective = IBS_BCAST, .root = process->ranks, .recv = to, .count = 1},
        {.collective = IBS_BCAST, .recv = NULL, .count = 1},
        {.collective = IBS_ALLTOALL, .send = from, .count = 1},
        {.collective = IBS_ALLREDUCE, .send = from, .recv = to, .count = 1},
        {.collective = IBS_ALLTOALL, .send = from, .recv = to, .count = SIZE_MAX / 2, .element = 8},
        {.collective = IBS_BCAST, .recv = to, .recv_counts = counts, .recv_places = places},
        {.collective = IBS_ALLTOALL,
         .send = from,
         .recv = to,
         .recv_counts = counts,
         .recv_places = places},
        {.collective = IBS_ALLTOALL, .recv = to, .recv_counts = counts},
        {.collective = IBS_ALLTOALL, .recv = to, .recv_counts = huge, .recv_places = places},
        {.collective = IBS_ALLGATHER,
         .send = from,
         .recv = to,
         .recv_counts = counts,
         .recv_places = gaps},
    };
    struct ibs_group *all;
    struct ibs_request *request;
    int bad = expect(process, "all", ibs_group_create(process->job, 1, NULL, 0, &all), 0);

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char what[32];

        snprintf(what, sizeof(what), "wrong call %zu", i);
        bad |= expect(process, what, ibs_run(all, &wrong[i]), -EINVAL);
    }
    bad |= expect(process, "no call", ibs_start(all, NULL, &request), -EINVAL);
    bad |= expect(process, "no request",
                  ibs_start(all, &(struct ibs_call){.collective = IBS_BARRIER}, NULL), -EINVAL);
    bad |= expect(process, "a test of none", ibs_test(NULL), -EINVAL);
    bad |= expect(process, "a wait for none", ibs_wait(NULL), -EINVAL);
    bad |= expect(process, "no group", ibs_run(NULL, &wrong[0]), -EINVAL);
    bad |= expect(process, "nothing to move",
                  ibs_run(all, &(struct ibs_call){.collective = IBS_ALLTOALL}), 0);
    bad |= expect(process, "begun",
                  ibs_start(all, &(struct ibs_call){.collective = IBS_BARRIER}, &request), 0);
    bad |= expect(process, "freed too early", ibs_group_free(all), -EBUSY);
    bad |= expect(process, "ended", ibs_wait(request), 0);
    bad |= expect(process, "freed", ibs_group_free(all), 0);
    return bad | expect(process, "the end", ibs_close(process->job), 0);
}

/* One step of what a rank dies in. */
static int step(struct ibs_group *group, size_t bytes, char *from, char *to)
{
    uint64_t sum = 1;
    const struct ibs_call brief = {.collective = IBS_ALLREDUCE,
                                   .recv = &sum,
                                   .count = 1,
                                   .element = sizeof(sum),
                                   .reduce = take_last},
                          vectors = {.collective = IBS_ALLGATHER,
                                     .send = from,
                                     .recv = to,
                                     .count = bytes};

    return ibs_run(group, bytes == 0 ? &brief : &vectors);
}

/* The last rank dies in the middle of many; a group without it goes on, over the same connections. */
static int die(struct process *process, size_t bytes, int steps, const char *name)
{
    uint32_t ranks[RANKS_MAX], living = process->ranks - 1;
    struct ibs_group *all, *rest = NULL;
    int bad = expect(process, "all", ibs_group_create(process->job, 1, NULL, 0, &all), 0), rc = 0;
    struct ibs_call barrier = {.collective = IBS_BARRIER};
    char *from = calloc(1, bytes + 1), *to = calloc(process->ranks, bytes + 1);

    for (uint32_t i = 0; i < living; i++) {
        ranks[i] = i;
    }
    if (process->rank < living) {
        bad |=
            expect(process, "the rest", ibs_group_create(process->job, 2, ranks, living, &rest), 0);
    }
    for (int i = 0; rc == 0; i++) {
        if (process->rank == living && i == steps) {
            sleep(bytes > 0); /* the others wait amid their vectors */
            (void)raise(SIGKILL);
        }
        rc = step(all, bytes, from, to);
    }
    fprintf(stderr, "rank %u: %s", process->rank, ibs_group_error(all));
    bad |= says(process, ibs_group_error(all), name);
    bad |= expect(process, "again", ibs_run(all, &barrier), rc);
    bad |= expect(process, "the rest goes on", ibs_run(rest, &barrier), 0);
    bad |= expect(process, "and with vectors", step(rest, bytes, from, to), 0);
    bad |= expect(process, "freed", ibs_group_free(all), 0);
    free(from);
    free(to);
    return bad | expect(process, "the rest freed", ibs_group_free(rest), 0);
}

static int death(struct process *process)
{
    return die(process, 0, 100, "allreduce");
}

static int death_long(struct process *process)
{
    return die(process, 4 << 20, 1, "allgather");
}

/* Rank 0 calls something else. */
static int apart(struct process *process)
{
    struct ibs_group *all;
    int bad = expect(process, "all", ibs_group_create(process->job, 1, NULL, 0, &all), 0), rc;
    uint64_t sum = 1;

    rc = ibs_run(all, process->rank == 0 ? &(struct ibs_call){.collective = IBS_BCAST,
                                                              .recv = &sum,
                                                              .count = sizeof(sum),
                                                              .root = 1}
                                         : &(struct ibs_call){.collective = IBS_ALLREDUCE,
                                                              .recv = &sum,
                                                              .count = 1,
                                                              .element = sizeof(sum),
                                                              .reduce = take_last});
    fprintf(stderr, "rank %u: %s", process->rank, ibs_group_error(all));
    bad |= rc < 0 ? 0 : processes_fail(process, "unlike calls did not fail", rc);
    return bad | says(process, ibs_group_error(all), "group 1");
}

/* Rank 0 sends rank 1 nothing, which awaits something; both go on calling until one hears of it. */
static int empty(struct process *process)
{
    const size_t here[] = {8, 8, 8}, less[] = {8, 0, 8};
    const ptrdiff_t places[] = {0, 8, 16};
    char from[24] = "", to[24];
    const struct ibs_call call = {.collective = IBS_ALLTOALL,
                                  .send = from,
                                  .recv = to,
                                  .send_counts = process->rank == 0 ? less : here,
                                  .recv_counts = here,
                                  .send_places = places,
                                  .recv_places = places};
    struct ibs_group *all;
    int bad = expect(process, "all", ibs_group_create(process->job, 1, NULL, 0, &all), 0), rc = 0;

    while (rc == 0) {
        rc = ibs_run(all, &call);
    }
    fprintf(stderr, "rank %u: %s", process->rank, ibs_group_error(all));
    return bad |
           (process->rank == 1 ? says(process, ibs_group_error(all), "has 8 bytes here and 0 there")
                               : 0);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        uint32_t ranks;
        bool opens;
        unsigned dead;
        int (*work)(struct process *process);
    } cases[] = {
        {"setups", 1, false, 0, setups},
        {"wrong_on_one", 3, false, 0, wrong_on_one},
        {"wrong_setup", 3, false, 0, wrong_setup},
        {"twins", 3, false, 0, twins},
        {"unlike", 3, false, 0, unlike},
        {"groups", 3, true, 0, groups},
        {"calls", 3, true, 0, calls},
        {"death", 4, true, 1 << 3, death},
        {"death_long", 4, true, 1 << 3, death_long},
        {"apart", 3, true, 0, apart},
        {"empty", 3, true, 0, empty},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (count > 1 && strcmp(words[1], cases[i].name) == 0) {
            return processes_run(cases[i].ranks, cases[i].opens, cases[i].dead, cases[i].work);
        }
    }
    fprintf(stderr, "usage: failures CASE\n");
    return 2;
}
