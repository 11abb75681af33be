/* What the library's files share. */
#ifndef IBSHIFT_LIB_PRIVATE_H
#define IBSHIFT_LIB_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/engine.h"
#include "group/endpoint.h"
#include "group/multicast.h"
#include "lib/ibshift.h"

enum { IBSHIFT_WHY = 1024 };

struct ibs_request {
    struct ibshift_op op;
    struct ibs_group *group;
    const char *name;
    ibs_reduce_fn *reduce;
    void *context;
    struct ibshift_memory scratch;
    const char *from; /* what goes to scratch first */
    size_t from_size;
    /* Counts and places, which the caller may change meanwhile; offsets of TMP. */
    struct ibshift_memory arrays;
    struct ibs_request *next; /* idle, in its job */
};

struct ibs_group {
    struct ibshift_group group; /* peers and name are its own */
    struct ibs_job *job;
    struct ibs_group *next;
    uint32_t seq;
    _Atomic uint32_t running;
    _Atomic int failed; /* the first status, or 0 */
    char name[32], why[IBSHIFT_WHY];
};

struct ibs_job {
    struct ibs_setup setup;
    struct ibshift_launch launch;
    char *cards; /* of all, each of card_size bytes */
    uint32_t card_size;
    char *options;        /* where values of parameters are */
    pthread_mutex_t lock; /* covers the next two */
    struct ibs_group *groups;
    struct ibs_request *idle;
};

/* Where what is told to people goes, of this thread, IBSHIFT_WHY bytes; NULL: to whom setup says. */
extern _Thread_local char *ibshift_lib_why;

/* Of this id, under the job's lock; NULL: there is none. */
struct ibs_group *ibshift_lib_group(struct ibs_job *job, uint32_t id);

/* What was written for users of Open MPI, in the words of this library's: in place. */
void ibshift_lib_words(char *text);

/* Frees the idle ones. */
void ibshift_lib_requests_free(struct ibs_job *job);

#endif
