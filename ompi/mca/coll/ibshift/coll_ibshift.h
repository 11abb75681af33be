/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#ifndef IBSHIFT_COLL_IBSHIFT_H
#define IBSHIFT_COLL_IBSHIFT_H

#include "ompi_config.h"

#include "coll_ibshift_compat.h"
#include "library.h"

#include <stdatomic.h>

struct ibshift_tapes;
struct ibshift_again;

/* Found by Open MPI under this name in the DSO. */
OMPI_DECLSPEC extern mca_coll_base_component_t mca_coll_ibshift_component;

enum { IBSHIFT_LENDERS = 4 };
enum ibshift_form { IBSHIFT_BLOCKING, IBSHIFT_NONBLOCKING, IBSHIFT_PERSISTENT };
enum { IBSHIFT_TAPED_FORMS = IBSHIFT_PERSISTENT }; /* those before: a persistent call has its own */

/*
 * What blocking all-to-alls with counts have come to know of their blocks (choose/padded.h). Only they change it, after calls that
 * all ranks count alike.
 */
struct ibshift_padded {
    uint32_t left; /* calls until the ranks compare their counts, with this one; 0: this one does */
    uint32_t apart;                      /* so many were between the last time and the next */
    size_t most;                         /* bytes of a block that goes padded; 0: none does */
    struct ibshift_padded_counts counts; /* that they agreed on */
    char *slots;                         /* of all blocks: sent, got; and counts of long ones */
};

/* Of starts that wait a moment for grants: so many of the last ones have done so in vain, and so many of the next ones do not. */
struct ibshift_patience {
    _Atomic uint32_t in_vain, left;
};

/*
 * One communicator's state. Before its owner (the communicator) goes, disable() or the destructor
 * gives the fallbacks back.
 */
struct mca_coll_ibshift_module_t {
    mca_coll_base_module_t super;
    /* What was installed before us, for every slot that we fill; modules are retained. */
    mca_coll_base_comm_coll_t fallback;
    mca_coll_base_module_t *borrowed[IBSHIFT_LENDERS]; /* that no slot holds */

    /* Of a communicator with native collectives; the rest is NULL or 0. */
    struct ibshift_group group; /* id: may be IBSHIFT_NO_NUMBER, IBSHIFT_AGREEING */
    uint32_t taken;             /* what they agree on */
    struct mca_coll_ibshift_module_t *next_agreed;
    _Atomic uint64_t seq; /* blocking and nonblocking collectives, twice, shifted by 32 bits */
    _Atomic uint32_t persistent; /* persistent ones created so far */
    _Atomic int failed;          /* OMPI code: a collective has failed, none is started any more */
    atomic_bool is_twice_told;   /* that a persistent one was started while it was active */
    struct ibshift_standing *standing; /* NULL: no grant for scratch has stood yet */
    struct ibshift_padded padded;
    struct ibshift_patience patience;
    /* Nonblocking calls may come in the middle of a blocking one: Open MPI makes communicators so. */
    struct ibshift_tapes *tapes[IBSHIFT_TAPED_FORMS][IBSHIFT_COLLECTIVES]; /* NULL: none ran yet */
    struct ibshift_again
        *latest[IBSHIFT_TAPED_FORMS]
               [IBSHIFT_COLLECTIVES]; /* whose arguments are soon compared, or NULL */
};
typedef struct mca_coll_ibshift_module_t mca_coll_ibshift_module_t;
OBJ_CLASS_DECLARATION(mca_coll_ibshift_module_t);

/*
 * The communicator's module if it runs natively, or NULL. Others may have taken some of our slots,
 * but hardly both of these.
 */
static inline mca_coll_ibshift_module_t *ibshift_module_of(const struct ompi_communicator_t *comm)
{
    mca_coll_base_module_t *const candidates[] = {comm->c_coll->coll_barrier_module,
                                                  comm->c_coll->coll_ibarrier_module};

    for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
        if (NULL != candidates[i] &&
            ((opal_object_t *)candidates[i])->obj_class == OBJ_CLASS(mca_coll_ibshift_module_t)) {
            return (mca_coll_ibshift_module_t *)candidates[i];
        }
    }
    return NULL;
}

/* The performance variables of MPI_T: counters of the process, and what a communicator's
 * collectives last ran. Once, with the component's parameters. */
void ibshift_pvars_register(void);

/* MPI_T's events, where Open MPI has them (from 6.0 on): what job/say.h raises. */
void ibshift_events_register(void);
void ibshift_events_raise(enum ibshift_event_kind kind, const struct ibshift_event *event);

/* Gives back all that the component has of Open MPI's lower layers and of the device. */
void ibshift_end(void);

mca_coll_base_module_t *mca_coll_ibshift_comm_query(struct ompi_communicator_t *comm,
                                                    int *priority);

/*
 * Components behind the user's back, unless the list names them. A list such as "ibshift,basic"
 * has no nonblocking, persistent and neighborhood functions, which every communicator needs:
 * libnbc's go into the slots that nobody has filled. And basic crashes in an exscan of one rank and
 * in scatters between groups (4.1.4): there the functions of self and inter replace the ones
 * before. tuned() is for communicators that cannot be native: where basic alone would serve them,
 * tuned does. open() once all listed components are open. All return OMPI codes.
 */
int ibshift_borrow_open(bool progress_threads, bool mpi_threads);
int ibshift_borrow_fill(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm);
int ibshift_borrow_tuned(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm);
bool ibshift_borrow_has_tuned(void);
void ibshift_borrow_return(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm);
void ibshift_borrow_close(void);

/* coll_ibshift_transport.c, coll_ibshift_observe.c */

/*
 * The ranks of an intracommunicator as peers of the net, for free(); NULL when one of them cannot
 * be reached over the net: the same answer on all of them.
 */
uint32_t *ibshift_cards_peers(struct ompi_communicator_t *comm);

/* coll_ibshift_comms.c */

extern const struct ibshift_net_comms ibshift_comms;

/* Of a module without a number, in a blocking collective that all ranks call. NOT_SUPPORTED, alike
 * on all of them: there is none. The module gives it back before it goes. */
int ibshift_number_agree(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm);
void ibshift_number_give_back(mca_coll_ibshift_module_t *module);

/* What runs on the communicator ends: it was revoked, or has lost a rank. */
int ibshift_revoke_local(struct ompi_communicator_t *comm, mca_coll_base_module_t *module);
void ibshift_revoke_lost(void); /* looks for such communicators */

/* For want of memory this rank takes no part in the communicator, where the others wait for it:
 * who asks is told. */
void ibshift_absent(const struct ompi_communicator_t *comm);

/* The endpoint, with what Open MPI's launcher and its lower layers do for it. Publishes the card. */
void ibshift_transport_open(ibshift_trace_t *(*open_trace)(void));

struct ibshift_transport_counters {
    struct ibshift_engine_stats engine;
    struct ibshift_net_verbs_stats net;
    struct ibshift_node_stats node;
    uint64_t registration_hits, registrations;
};

/* All 0 without an endpoint. */
void ibshift_transport_counters(struct ibshift_transport_counters *counters);

/*
 * coll_ibshift_trace: each step as it starts, in the printer's words. A file has the bare lines,
 * and before those of another collective than the last line's one that begins with '#': its key
 * (communicator and number, the same on all ranks), what MPI calls it, and the command that prints
 * its plan. On standard error the key stands before every line.
 *
 * NULL: nobody asked, or the file does not open (which is said). Close it when the endpoint has
 * gone.
 */
ibshift_trace_t *ibshift_trace_open(void);
void ibshift_trace_close(void);

/* The slots of a module: coll_ibshift_entry.c, coll_ibshift_module.c, coll_ibshift_fallback.c. */

/* X(name): the collectives that a module can have natively. */
#define IBSHIFT_NATIVE(X)                                                                          \
    X(allgather)                                                                                   \
    X(allgatherv)                                                                                  \
    X(allreduce)                                                                                   \
    X(alltoall)                                                                                    \
    X(alltoallv)                                                                                   \
    X(alltoallw)                                                                                   \
    X(barrier)                                                                                     \
    X(bcast)                                                                                       \
    X(exscan)                                                                                      \
    X(gather)                                                                                      \
    X(gatherv)                                                                                     \
    X(neighbor_allgather)                                                                          \
    X(neighbor_allgatherv)                                                                         \
    X(neighbor_alltoall)                                                                           \
    X(neighbor_alltoallv)                                                                          \
    X(neighbor_alltoallw)                                                                          \
    X(reduce)                                                                                      \
    X(reduce_scatter)                                                                              \
    X(reduce_scatter_block)                                                                        \
    X(scan)                                                                                        \
    X(scatter)                                                                                     \
    X(scatterv)

/* The function slots of a collective, blocking, nonblocking and persistent: X(name) stands for
 * coll_<name> and coll_<name>_module. */
#define IBSHIFT_FORMS(X, name)                                                                     \
    X(name)                                                                                        \
    X(i##name)                                                                                     \
    X(name##_init)

/* Puts the three forms of a collective into the module's slots. */
#define IBSHIFT_INSTALLER(name) void ibshift_install_##name(mca_coll_base_module_t *module);
IBSHIFT_NATIVE(IBSHIFT_INSTALLER)

#endif
