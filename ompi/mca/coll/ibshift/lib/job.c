#include "lib/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "group/choose.h"
#include "job/params.h"
#include "job/say.h"

enum { HOSTNAME = 64 };

/* What processes tell each other first: who is on which host. */
struct hello {
    uint64_t host;  /* the same for processes that share memory; 0: with nobody */
    uint32_t job;   /* that of rank 0 counts */
    int32_t status; /* a process that cannot go on ends it for all */
    uint32_t rank, ranks;
    uint32_t api;
    char hostname[HOSTNAME];
};

static struct ibs_job *_Atomic only; /* the process's */

const char *ibs_version(void)
{
    return IBSHIFT_VERSION;
}

static void put(void *context, const char *text)
{
    const struct ibs_job *job = context;
    char *why = ibshift_lib_why, *own = strdup(text);
    size_t length = why != NULL ? strlen(why) : 0;

    if (own != NULL) {
        ibshift_lib_words(own);
        text = own;
    }
    if (why != NULL) {
        snprintf(why + length, IBSHIFT_WHY - length, "%s", text);
    } else if (job->setup.say != NULL) {
        job->setup.say(job->setup.context, text);
    } else {
        fputs(text, stderr);
    }
    free(own);
}

static void set_teller(struct ibs_job *job, const char *host)
{
    ibshift_teller_set(&(struct ibshift_teller){.folders = {IBSHIFT_LIBRARY_DATA},
                                                .host = host,
                                                .job = job->launch.job,
                                                .self = job->setup.rank,
                                                .put = put,
                                                .context = job});
}

/* The program's options, then the user's. */
static int set_params(struct ibs_job *job, char *error, size_t size)
{
    const char *own = job->setup.options, *users = getenv("IBSHIFT_OPTIONS");
    int rc = asprintf(&job->options, "%s;%s", own != NULL ? own : "", users != NULL ? users : "");

    if (rc < 0) {
        job->options = NULL;
        snprintf(error, size, "no memory");
        return -ENOMEM;
    }
    return ibshift_params_set(job->options, error, size);
}

static bool is_here(void *context, uint32_t id, uint32_t member)
{
    struct ibs_job *job = context;
    struct ibs_group *group;
    bool is_in = false;

    pthread_mutex_lock(&job->lock);
    group = ibshift_lib_group(job, id);
    for (uint32_t i = 0; group != NULL && !is_in && i < group->group.size; i++) {
        is_in = member == IBSHIFT_ANY_MEMBER || group->group.peers[i] == member;
    }
    pthread_mutex_unlock(&job->lock);
    return is_in;
}

static struct ibshift_ledger *ledger(void *context, uint32_t id)
{
    struct ibs_job *job = context;
    struct ibs_group *group;

    pthread_mutex_lock(&job->lock);
    group = ibshift_lib_group(job, id);
    pthread_mutex_unlock(&job->lock);
    return group == NULL ? NULL : &group->group.ledger;
}

/* For free(). */
static char *receive(uint32_t peer, size_t *size)
{
    struct ibs_job *job = atomic_load(&only);
    char *card = malloc(job->card_size);

    if (card != NULL) {
        memcpy(card, job->cards + (size_t)peer * job->card_size, job->card_size);
        *size = job->card_size;
    }
    return card;
}

/* What allgather gave has each process at its place, in a job of one size. */
static int check_places(const struct hello *all, uint32_t ranks, char *error, size_t size)
{
    for (uint32_t i = 0; i < ranks; i++) {
        uint32_t rank = all[i].rank;

        if (all[i].api != IBS_API) {
            continue; /* which is said below */
        }
        if (all[i].ranks != ranks) {
            snprintf(error, size, "rank %u on %.*s has ibs_setup.ranks %u, here it is %u", i,
                     HOSTNAME, all[i].hostname, all[i].ranks, ranks);
            return -EINVAL;
        }
        if (rank != i && rank < ranks && all[rank].rank == rank) {
            snprintf(error, size, "two processes are rank %u: one on %.*s, one on %.*s", rank,
                     HOSTNAME, all[rank].hostname, HOSTNAME, all[i].hostname);
            return -EINVAL;
        }
        if (rank != i) {
            snprintf(error, size,
                     "the program's allgather has the bytes of rank %u at the place of rank %u",
                     rank, i);
            return -EINVAL;
        }
    }
    return 0;
}

/* Who else is on this host, and whether all can go on. */
static int meet(struct ibs_job *job, const struct hello *mine, char *error, size_t size)
{
    uint32_t ranks = job->setup.ranks;
    struct hello *all = calloc(ranks, sizeof(*all));
    int rc =
        all == NULL ? -ENOMEM : job->setup.allgather(job->setup.context, mine, all, sizeof(*all));

    if (rc != 0) {
        snprintf(error, size, all == NULL ? "no memory" : "the program's allgather failed: %d", rc);
        free(all);
        return rc;
    }
    job->launch.job = all[0].job;
    rc = check_places(all, ranks, error, size);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        bool is_near = mine->host != 0 && all[rank].host == mine->host;

        job->launch.near += is_near;
        job->launch.place += is_near && rank < job->setup.rank;
        if (rc == 0 && (all[rank].status != 0 || all[rank].api != mine->api)) {
            rc = all[rank].status != 0 ? all[rank].status : -EPROTO;
            if (rank != job->setup.rank || rc == -EPROTO) {
                snprintf(error, size, "rank %u on %.*s %s", rank, HOSTNAME, all[rank].hostname,
                         rc == -EPROTO ? "has another version of libibshift"
                                       : "cannot take part: it says why");
            }
        }
    }
    free(all);
    return rc;
}

/* Each process gets the cards of all, which are as long as the longest. */
static int exchange(struct ibs_job *job, const char *card, uint32_t length, char *error,
                    size_t size)
{
    uint32_t ranks = job->setup.ranks, *lengths = calloc(ranks, sizeof(*lengths));
    char *mine = NULL;
    int rc = lengths == NULL
                 ? -ENOMEM
                 : job->setup.allgather(job->setup.context, &length, lengths, sizeof(*lengths));

    for (uint32_t rank = 0; rc == 0 && rank < ranks; rank++) {
        job->card_size = lengths[rank] > job->card_size ? lengths[rank] : job->card_size;
    }
    if (rc == 0) {
        mine = calloc(1, job->card_size);
        job->cards = calloc(ranks, job->card_size);
        rc = mine == NULL || job->cards == NULL ? -ENOMEM : 0;
    }
    if (rc == 0) {
        memcpy(mine, card, length);
        rc = job->setup.allgather(job->setup.context, mine, job->cards, job->card_size);
    }
    if (rc != 0) {
        snprintf(error, size, rc == -ENOMEM ? "no memory" : "the program's allgather failed: %d",
                 rc);
    }
    free(mine);
    free(lengths);
    return rc;
}

/* Whether everybody reaches everybody, which all find alike. */
static int check_reach(const struct ibs_job *job, char *error, size_t size)
{
    uint32_t ranks = job->setup.ranks, *all = calloc(ranks, sizeof(*all));
    bool do_reach;

    if (all == NULL) {
        snprintf(error, size, "no memory");
        return -ENOMEM;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        all[rank] = rank;
    }
    do_reach = ranks == 1 || ibshift_cards_reach(all, ranks);
    free(all);
    if (!do_reach) {
        ibshift_cards_why_not(ranks, error, size);
        return -EHOSTUNREACH;
    }
    if (ibshift_endpoint.engine == NULL && ranks > 1) {
        snprintf(error, size, "no memory");
        return -ENOMEM;
    }
    return 0;
}

static struct hello greet(const struct ibs_setup *setup, int status)
{
    struct hello hello = {
        .api = IBS_API, .status = status, .rank = setup->rank, .ranks = setup->ranks};

    (void)gethostname(hello.hostname, sizeof(hello.hostname) - 1);
    return hello;
}

static int open_together(struct ibs_job *job, char *error, size_t size)
{
    static char hostname[HOSTNAME];
    struct hello hello = greet(&job->setup, 0);
    char card[IBSHIFT_CARD_MAX];
    uint32_t length;
    int rc;

    memcpy(hostname, hello.hostname, sizeof(hostname));
    (void)getrandom(&hello.job, sizeof(hello.job), 0);
    set_teller(job, hostname);
    hello.status = set_params(job, error, size);
    if (ibshift_node_host(NULL, &hello.host) != 0) {
        hello.host = 0;
    }
    rc = meet(job, &hello, error, size);
    if (rc != 0) {
        return rc;
    }
    set_teller(job, hostname);
    ibshift_params_check(NULL);
    ibshift_choose_open();
    job->launch.self = job->setup.rank;
    job->launch.processes = job->setup.ranks;
    job->launch.is_tolerant = true; /* groups go on without processes that others have lost */
    job->launch.comms = (struct ibshift_net_comms){job, is_here, ledger, NULL};
    job->launch.exchange = (struct ibshift_exchange){0, receive, ibshift_params_differ};
    length = (uint32_t)ibshift_endpoint_open(&job->launch, card);
    rc = exchange(job, card, length, error, size);
    return rc == 0 ? check_reach(job, error, size) : rc;
}

static void end(struct ibs_job *job)
{
    ibshift_lib_requests_free(job);
    ibshift_endpoint_close();
    ibshift_teller_set(&(struct ibshift_teller){.folders = {IBSHIFT_LIBRARY_DATA}, .host = ""});
    free(job->cards);
    free(job->options);
    pthread_mutex_destroy(&job->lock);
    free(job);
    atomic_store(&only, NULL);
}

/* NULL, or why the setup is wrong; without an allgather and a place nobody can be told. */
static const char *find_wrong(const struct ibs_setup *setup, struct ibs_job *const *out, bool *told)
{
    *told = setup != NULL && setup->allgather != NULL && setup->rank < setup->ranks;
    if (setup == NULL || setup->allgather == NULL) {
        return "ibs_open() needs a setup with an allgather";
    }
    if (setup->api != IBS_API) {
        return "the program was compiled with the header of another version of libibshift";
    }
    if (setup->rank >= setup->ranks) {
        return "ibs_setup.rank is not below ibs_setup.ranks";
    }
    return out == NULL ? "ibs_open() needs a place for the job" : NULL;
}

/* The other processes wait for this one, which cannot go on. */
static void tell_others(const struct ibs_setup *setup, int status)
{
    const struct hello hello = greet(setup, status);
    struct hello *all = calloc(setup->ranks, sizeof(*all));

    if (all != NULL) {
        (void)setup->allgather(setup->context, &hello, all, sizeof(*all));
    }
    free(all);
}

/* NULL with an error: no memory, or there is one. */
static struct ibs_job *enter(const struct ibs_setup *setup, int *rc, const char **why)
{
    struct ibs_job *job = calloc(1, sizeof(*job)), *none = NULL;

    if (job == NULL) {
        *why = "no memory";
        *rc = -ENOMEM;
        return NULL;
    }
    job->setup = *setup;
    pthread_mutex_init(&job->lock, NULL);
    if (!atomic_compare_exchange_strong(&only, &none, job)) {
        pthread_mutex_destroy(&job->lock);
        free(job);
        *why = "this process is in a job already: ibs_close() ends it";
        *rc = -EBUSY;
        return NULL;
    }
    return job;
}

int ibs_open(const struct ibs_setup *setup, struct ibs_job **out, char *error, size_t size)
{
    char nowhere[IBSHIFT_WHY];
    bool is_told;
    const char *why = find_wrong(setup, out, &is_told);
    int rc = why == NULL ? 0 : -EINVAL;
    struct ibs_job *job = rc == 0 ? enter(setup, &rc, &why) : NULL;

    size = error == NULL ? sizeof(nowhere) : size;
    error = error == NULL ? nowhere : error;
    if (job == NULL) {
        snprintf(error, size, "%s", why);
        if (is_told) {
            tell_others(setup, rc);
        }
        return rc;
    }
    rc = open_together(job, error, size);
    if (rc != 0) {
        if (size > 0) {
            ibshift_lib_words(error);
        }
        end(job);
        return rc;
    }
    *out = job;
    return 0;
}

int ibs_close(struct ibs_job *job)
{
    char mine = 0, *all;
    int rc;

    if (job == NULL || job != atomic_load(&only)) {
        return -EINVAL;
    }
    if (job->groups != NULL) {
        return -EBUSY;
    }
    /* A peer may still wait for the last message of a collective that has ended here. */
    all = malloc(job->setup.ranks);
    rc = all == NULL ? -ENOMEM : job->setup.allgather(job->setup.context, &mine, all, 1);
    free(all);
    end(job);
    return rc;
}
