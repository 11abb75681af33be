/*
 * Fault tolerance of Open MPI 5.0 and later (ULFM): ranks kill themselves at random places in collectives, and while the others shrink
 * the communicator. Who lives gets results that are right, or errors of the classes by which a program knows what to do; revokes,
 * shrinks, and goes on, until two ranks are left:
 *     shrinks SEED
 */

#include "job.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

enum { PATIENCE = 60, FEWEST = 2, AT_ONCE = 4, CALLS = 20, DELAY = 4000 /* us */ };

/* Where a rank dies. IN_TIME: some time after the call began, wherever it is by then. */
enum place { BEFORE, INSIDE, IN_TIME, WHEN_TOLD, WHILE_SHRINKING, PLACES };

struct victim {
    int rank; /* of the communicator */
    int call;
    enum place place;
    unsigned pause; /* tests of a request, or microseconds */
};

/* What happens between two shrinks, drawn alike on all ranks. */
struct act {
    MPI_Comm comm;
    int rank, size, victims;
    struct victim victim[2];
    uint64_t seed;
};

struct one {
    struct job job;
    char *expected;
    MPI_Request request;
    enum form form;
};

static int world_rank, killed, errors, right, revoked;
static struct job_kit *kit;
static char running[256];

static void hangs(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, running, strlen(running));
    _exit(3);
}

/* Another clock than alarm(), which is for what hangs. */
static void die_in(unsigned microseconds)
{
    struct itimerval when = {.it_value = {.tv_usec = 1 + (suseconds_t)microseconds}};

    signal(SIGPROF, SIG_DFL);
    setitimer(ITIMER_PROF, &when, NULL); /* the default of its signal ends the process */
}

static void begin(const char *what, int call)
{
    snprintf(running, sizeof(running), "shrinks: rank %d hangs in %s, call %d, %d killed before\n",
             world_rank, what, call, killed);
    alarm(PATIENCE);
}

static const struct victim *mine(const struct act *act)
{
    for (int i = 0; i < act->victims; i++) {
        if (act->victim[i].rank == act->rank) {
            return &act->victim[i];
        }
    }
    return NULL;
}

/* An error says that somebody has died, or that somebody else has noticed. */
static void look_at(int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int class = rc, length;

    MPI_Error_class(rc, &class);
    MPI_Error_string(rc, text, &length);
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED ||
              class == MPIX_ERR_PROC_FAILED_PENDING,
          "%s: an error of class %d: %s", what, class, text);
    errors++;
    revoked += class == MPIX_ERR_REVOKED;
}

static void end(struct one *one, int rc)
{
    if (rc == MPI_SUCCESS) {
        CHECK(memcmp(one->job.recv.memory, one->expected, one->job.recv.compared) == 0,
              "%s: a wrong result", job_names[one->job.which]);
        right++;
    } else {
        look_at(rc, job_names[one->job.which]);
    }
    if (one->request != MPI_REQUEST_NULL) {
        MPI_Request_free(&one->request);
    }
    free(one->expected);
    job_free(&one->job);
}

static int start(struct one *one, const struct act *act, uint64_t seed)
{
    static const long bytes[] = {8, 300, 20000, 200000};
    uint64_t state = seed;

    one->form = (enum form)(job_random(&state) % FORM_COUNT);
    one->job = job_draw(kit, act->comm, seed, JOB_COLLECTIVE_COUNT, bytes[job_random(&state) % 4]);
    job_fill(&one->job);
    one->expected = malloc(one->job.recv.size);
    CHECK(one->expected != NULL, "no memory");
    memcpy(one->expected, one->job.recv.memory, one->job.recv.size);
    job_expect(&one->job, one->expected);
    return job_start(&one->job, act->comm, one->form, &one->request);
}

static int wait_for(MPI_Request *request, unsigned tests, bool dies)
{
    int rc = MPI_SUCCESS, done = 0;

    for (unsigned i = 0; dies && !done && rc == MPI_SUCCESS && i < tests; i++) {
        rc = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
    if (dies) {
        raise(SIGKILL);
    }
    return MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* Up to AT_ONCE calls that run together; false after an error. All of them end. */
static bool some(const struct act *act, int call)
{
    const struct victim *me = mine(act);
    bool is_mine = me != NULL && me->call == call;
    uint64_t state = act->seed + (uint64_t)call;
    int count = 1 + (int)(job_random(&state) % AT_ONCE), started = 0, first = MPI_SUCCESS;
    struct one ones[AT_ONCE];

    if (is_mine && me->place == BEFORE) {
        raise(SIGKILL);
    } else if (is_mine && me->place == IN_TIME) {
        die_in(me->pause);
    }
    while (started < count && first == MPI_SUCCESS) {
        begin("a start", call);
        first = start(&ones[started], act, act->seed + (uint64_t)(call * AT_ONCE + started));
        if (ones[started].request == MPI_REQUEST_NULL) {
            end(&ones[started], first);
            count--;
        } else {
            started++;
        }
    }
    for (int i = 0; i < started; i++) {
        int rc;
        begin(job_names[ones[i].job.which], call);
        rc = wait_for(&ones[i].request, me != NULL ? me->pause % 64 : 0,
                      is_mine && me->place == INSIDE);
        end(&ones[i], rc);
        first = first == MPI_SUCCESS ? rc : first;
    }
    if (is_mine && me->place == INSIDE) { /* all were blocking ones */
        raise(SIGKILL);
    }
    return first == MPI_SUCCESS;
}

static void draw(struct act *act)
{
    uint64_t state = act->seed;
    int most = act->size - FEWEST;

    act->victims = most < 1 ? 0 : most > 1 && job_random(&state) % 3 == 0 ? 2 : 1;
    for (int i = 0; i < act->victims; i++) {
        act->victim[i] = (struct victim){
            .rank = (int)(job_random(&state) % (uint64_t)act->size),
            .call = (int)(job_random(&state) % CALLS),
            .place = (enum place)(job_random(&state) % (i == 0 ? WHEN_TOLD : PLACES)),
            .pause = (unsigned)(job_random(&state) % DELAY)};
    }
    if (act->victims == 2 && act->victim[0].rank == act->victim[1].rank) {
        act->victim[1].rank = (act->victim[0].rank + 1) % act->size;
    }
}

/* What there is after it has all who live, and maybe some who died in it. */
static MPI_Comm shrink(const struct act *act)
{
    const struct victim *me = mine(act);
    MPI_Comm next = MPI_COMM_NULL;
    int flag = 1, rc;

    if (me != NULL && me->place == WHEN_TOLD) {
        raise(SIGKILL);
    }
    if (me != NULL && me->place == WHILE_SHRINKING) {
        die_in(me->pause);
    }
    begin("MPIX_Comm_revoke", 0);
    CHECK(MPIX_Comm_revoke(act->comm) == MPI_SUCCESS, "a communicator cannot be revoked");
    begin("MPIX_Comm_shrink", 0);
    rc = MPIX_Comm_shrink(act->comm, &next);
    CHECK(rc == MPI_SUCCESS, "a communicator cannot be shrunk: %d", rc);
    begin("MPIX_Comm_agree", 0);
    rc = MPIX_Comm_agree(next, &flag);
    if (rc != MPI_SUCCESS) {
        look_at(rc, "MPIX_Comm_agree");
    }
    CHECK(flag == 1, "all say 1, and %d is agreed on", flag);
    return next;
}

/* A victim that has missed its place dies where the act ends. */
static MPI_Comm play(struct act *act)
{
    MPI_Comm next;
    int size;

    for (int call = 0; some(act, call); call++) {
    }
    if (mine(act) != NULL && mine(act)->place < WHEN_TOLD) {
        raise(SIGKILL);
    }
    next = shrink(act);
    if (mine(act) != NULL) {
        raise(SIGKILL);
    }
    MPI_Comm_size(next, &size);
    killed += act->size - size;
    MPI_Comm_free(&act->comm);
    return next;
}

/* Without MPI_Finalize, which in Open MPI 5.0.7 may hang when somebody has died, whatever the components. */
static void leave(MPI_Comm comm)
{
    int flag = 1;

    begin("the last MPIX_Comm_agree", 0);
    CHECK(MPIX_Comm_agree(comm, &flag) == MPI_SUCCESS && flag == 1, "no agreement at the end");
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    struct act act = {.seed = argc == 2 ? strtoull(argv[1], NULL, 10) : 0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    signal(SIGALRM, hangs);
    kit = job_kit_create();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    begin("MPI_Comm_dup", 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &act.comm);
    for (;; act.seed += 1000) {
        MPI_Comm_rank(act.comm, &act.rank);
        MPI_Comm_size(act.comm, &act.size);
        draw(&act);
        if (act.victims == 0) {
            break;
        }
        act.comm = play(&act);
    }
    begin("the last collectives", 0);
    check_collectives(act.comm, 1, 300);
    if (act.rank == 0) {
        printf("shrinks: %d killed, %d left; rank %d: %d errors, %d of them revoked, %d right\n",
               killed, act.size, world_rank, errors, revoked, right);
    }
    leave(act.comm);
}

#else

int main(void)
{
    puts("this Open MPI has no fault tolerance");
    return 77;
}

#endif
