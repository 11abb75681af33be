/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
/* What the user can see of the collectives: the trace, and the variables and events of MPI_T. */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"

#include "opal/mca/base/mca_base_pvar.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Of the trace: under the engine's lock, but for open and close. */
static FILE *out;
static char last_key[IBSHIFT_CALL_NUMBER];

enum { TITLE = 160 };

/* A communicator's name is the user's: no line of ours may begin in it. */
static void put_title(const struct ibshift_op *op)
{
    const ibshift_call_t *call = op->owner;
    char title[TITLE];

    snprintf(title, sizeof(title), "%s on %s", call->name,
             call->request.super.req_mpi_object.comm->c_name);
    ibshift_make_plain(title);
    fputs(title, out);
}

static void trace(void *context, const struct ibshift_op *op, const char *line)
{
    bool is_file = stderr != out;
    char key[IBSHIFT_CALL_NUMBER];

    ibshift_call_number(op->params.comm, op->seq, key, sizeof(key));
    if (0 != strcmp(key, last_key)) {
        strcpy(last_key, key);
        fprintf(out, "%s# %s ", is_file ? "" : "ibshift: ", key);
        put_title(op);
        fputs(": ", out);
        ibshift_plan_put_command(out, op->params.alg, &op->params.plan, op->params.rank);
        fputc('\n', out);
    }
    if (!is_file) {
        fprintf(out, "ibshift: %s ", key);
    }
    fprintf(out, "%s\n", line);
}

/* PATH.RANK; processes that were spawned count their ranks anew, so their job's number is in it. */
static FILE *open_file(void)
{
    const opal_process_name_t *self = OMPI_PROC_MY_NAME;
    unsigned job = IBSHIFT_LOCAL_JOB(self->jobid);
    char path[4096];
    FILE *file;
    int length;

    if (job > 1) {
        length = snprintf(path, sizeof(path), "%s.%u.%u", ibshift_params.trace, job, self->vpid);
    } else {
        length = snprintf(path, sizeof(path), "%s.%u", ibshift_params.trace, self->vpid);
    }
    if (length >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        file = NULL;
    } else {
        file = fopen(path, "we");
    }
    if (NULL == file && 0 == ompi_process_info.my_local_rank) {
        ibshift_help("bad-trace", path, ompi_process_info.nodename, strerror(errno));
    }
    return file;
}

ibshift_trace_t *ibshift_trace_open(void)
{
    if ('\0' == ibshift_params.trace[0]) {
        return NULL;
    }
    if (0 == strcmp(ibshift_params.trace, "stderr")) {
        out = stderr;
    } else {
        out = open_file();
    }
    if (NULL == out) {
        return NULL;
    }
    /* What has started is in the file, whatever becomes of the process. */
    setvbuf(out, NULL, _IOLBF, BUFSIZ);
    last_key[0] = '\0';
    return trace;
}

void ibshift_trace_close(void)
{
    if (NULL != out && stderr != out) {
        fclose(out);
    }
    out = NULL;
}

/* Counters of the process; one row is one variable. */
struct counter {
    const char *name;
    size_t offset; /* of an uint64_t in struct ibshift_transport_counters */
    int class;
    const char *help;
};

#define AT(field) offsetof(struct ibshift_transport_counters, field)

static const struct counter counters[] = {
    {"collectives", AT(engine.ops), MCA_BASE_PVAR_CLASS_COUNTER,
     "Collectives that ran natively to their end"},
    {"collectives_failed", AT(engine.failed_ops), MCA_BASE_PVAR_CLASS_COUNTER,
     "Those of them that ended in an error"},
    {"taped", AT(engine.taped), MCA_BASE_PVAR_CLASS_COUNTER,
     "Those of them that reused the resolved steps of an earlier call (coll_ibshift_tapes)"},
    {"messages", AT(engine.sends), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages sent: the send steps of the plans, without those whose blocks have no bytes"},
    {"bytes", AT(engine.send_bytes), MCA_BASE_PVAR_CLASS_AGGREGATE, "Bytes of the messages sent"},
    {"messages_received", AT(engine.recvs), MCA_BASE_PVAR_CLASS_COUNTER, "Messages received"},
    {"eager", AT(net.eager), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages sent into receives that the peer keeps posted"},
    {"ring", AT(net.ring), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages written into the ring of a peer that often gets messages from this process"},
    {"rendezvous", AT(net.rendezvous), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages written into the receiver's buffer after its grant"},
    {"standing", AT(net.standing), MCA_BASE_PVAR_CLASS_COUNTER,
     "Of the messages above, those that used the grant of an earlier one"},
    {"pieces", AT(net.pieces), MCA_BASE_PVAR_CLASS_COUNTER,
     "Pieces that some of these were written in, one at a time"},
    {"early", AT(net.held), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages that arrived before their receive was posted"},
    {"control", AT(net.control), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages between the endpoints themselves: grants, credits"},
    {"copied", AT(net.copied), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages copied through the endpoint's memory because the buffer could not be registered"},
    {"node_short", AT(node.cells), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages to ranks of this host that fitted into a cell of shared memory"},
    {"node_ring", AT(node.rings), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages to ranks of this host through a ring of shared memory"},
    {"node_direct", AT(node.direct), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages to ranks of this host that the kernel copied from buffer to buffer"},
    {"node_early", AT(node.held), MCA_BASE_PVAR_CLASS_COUNTER,
     "Messages from ranks of this host that arrived before their receive was posted"},
    {"connections", AT(net.connections), MCA_BASE_PVAR_CLASS_COUNTER, "Connections made"},
    {"registration_hits", AT(registration_hits), MCA_BASE_PVAR_CLASS_COUNTER,
     "Buffers that were registered already"},
    {"registrations", AT(registrations), MCA_BASE_PVAR_CLASS_COUNTER,
     "Buffers that had to be registered with the device"},
    {"registered_bytes", AT(net.registered), MCA_BASE_PVAR_CLASS_LEVEL,
     "Bytes that the endpoint itself has registered, for short messages"},
};

static int read_counter(const mca_base_pvar_t *pvar, void *value, void *object)
{
    const struct counter *counter = pvar->ctx;
    struct ibshift_transport_counters all;

    ibshift_transport_counters(&all);
    *(unsigned long long *)value = *(uint64_t *)((char *)&all + counter->offset);
    return OMPI_SUCCESS;
}

static void register_counter(const struct counter *counter)
{
    mca_base_pvar_flag_t flags = MCA_BASE_PVAR_FLAG_READONLY;

    if (MCA_BASE_PVAR_CLASS_LEVEL == counter->class) {
        flags |= MCA_BASE_PVAR_FLAG_CONTINUOUS;
    }
    (void)mca_base_component_pvar_register(
        &mca_coll_ibshift_component.collm_version, counter->name, counter->help, OPAL_INFO_LVL_4,
        counter->class, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
        flags, read_counter, NULL, NULL, (void *)(uintptr_t)counter);
}

/* What ran last on a communicator, for each collective; it and the row below make the variable's
 * context. */
enum { CHOSEN, RADIX, SEGMENTS, MODELLED, CHOICE_VARIABLES };
static const struct {
    const char *name;
    int class;
    mca_base_var_type_t type;
    const char *help; /* NULL: what the numbers stand for */
} choices[CHOICE_VARIABLES] = {
    [CHOSEN] = {"chosen", MCA_BASE_PVAR_CLASS_STATE, MCA_BASE_VAR_TYPE_INT, NULL},
    [RADIX] = {"chosen_radix", MCA_BASE_PVAR_CLASS_LEVEL, MCA_BASE_VAR_TYPE_UNSIGNED_INT,
               "Its radix; 0: it has none"},
    [SEGMENTS] = {"chosen_segments", MCA_BASE_PVAR_CLASS_LEVEL, MCA_BASE_VAR_TYPE_UNSIGNED_INT,
                  "Segments that it cut the vector into"},
    [MODELLED] = {"chosen_modelled_us", MCA_BASE_PVAR_CLASS_LEVEL, MCA_BASE_VAR_TYPE_DOUBLE,
                  "Microseconds that the cost model predicted; negative: not priced"},
};

static int read_choice(const mca_base_pvar_t *pvar, void *value, void *object)
{
    static const struct ibshift_kept_choice none;
    const struct ompi_communicator_t *comm = object;
    mca_coll_ibshift_module_t *module = NULL == comm ? NULL : ibshift_module_of(comm);
    uintptr_t context = (uintptr_t)pvar->ctx;
    /* choices.last points to what is kept */
    const struct ibshift_kept_choice *kept =
        NULL == module
            ? NULL
            : (const void *)atomic_load_explicit(
                  &module->group.choices.last[context / CHOICE_VARIABLES], memory_order_relaxed);

    kept = NULL == kept ? &none : kept;
    switch (context % CHOICE_VARIABLES) {
    case CHOSEN:
        *(int *)value = &none == kept ? 0 : ibshift_alg_place(kept->choice.alg);
        break;
    case RADIX:
        *(unsigned *)value = kept->choice.radix;
        break;
    case SEGMENTS:
        *(unsigned *)value = kept->choice.segments;
        break;
    default:
        *(double *)value = kept->choice.price.last;
    }
    return OMPI_SUCCESS;
}

/*
 * The names stand in the description and not in an enumeration: ompi_info crashes on a variable
 * that has both (docs/failures.md).
 */
static void describe_numbers(enum ibshift_collective collective, char *text, size_t size)
{
    const char *const *names = ibshift_param_choices(collective, "none");
    size_t length = (size_t)snprintf(text, size,
                                     "Number of the algorithm that ran last on the communicator. "
                                     "0: none, it has not run natively");

    for (int i = 1; NULL != names[i] && length < size; i++) {
        length += (size_t)snprintf(text + length, size - length, ", %d: %s", i, names[i]);
    }
}

static void register_choices(enum ibshift_collective collective)
{
    char name[64], numbers[512];

    describe_numbers(collective, numbers, sizeof(numbers));
    for (uintptr_t i = 0; i < CHOICE_VARIABLES; i++) {
        snprintf(name, sizeof(name), "%s_%s", ibshift_collective_name(collective), choices[i].name);
        (void)mca_base_component_pvar_register(
            &mca_coll_ibshift_component.collm_version, name,
            NULL != choices[i].help ? choices[i].help : numbers, OPAL_INFO_LVL_4, choices[i].class,
            choices[i].type, NULL, MCA_BASE_VAR_BIND_MPI_COMM,
            MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_choice, NULL, NULL,
            (void *)(collective * CHOICE_VARIABLES + i));
    }
}

void ibshift_pvars_register(void)
{
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        register_counter(&counters[i]);
    }
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        register_choices((enum ibshift_collective)i);
    }
}

/* All have struct ibshift_event for their elements. */
static const struct {
    const char *name, *help;
} events[IBSHIFT_EVENTS] = {
    [IBSHIFT_EVENT_CHOICE] = {"choice",
                              "A plan was chosen. value: number of the algorithm, as in "
                              "the variable of its collective, 0: it runs beneath; detail: "
                              "its radix"},
    [IBSHIFT_EVENT_LOST] = {"peer_lost", "A collective failed with a rank that does not answer. "
                                         "value: the rank; detail: errno"},
    [IBSHIFT_EVENT_FALLBACK] = {"fallback", "A collective runs in the component beneath"},
    [IBSHIFT_EVENT_SKIPPED] = {"skipped", "Functions of a new communicator were left to others, as "
                                          "nothing is beneath them. value: how many"},
};

static ibshift_compat_event_t *handles[IBSHIFT_EVENTS];

void ibshift_events_register(void)
{
    static const mca_base_var_type_t types[] = {
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, MCA_BASE_VAR_TYPE_INT, MCA_BASE_VAR_TYPE_INT,
        MCA_BASE_VAR_TYPE_INT, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG};
    static const ptrdiff_t places[] = {
        offsetof(struct ibshift_event, group), offsetof(struct ibshift_event, collective),
        offsetof(struct ibshift_event, value), offsetof(struct ibshift_event, detail),
        offsetof(struct ibshift_event, bytes)};

    for (int i = 0; i < IBSHIFT_EVENTS; i++) {
        handles[i] = ibshift_compat_event(&mca_coll_ibshift_component.collm_version, events[i].name,
                                          events[i].help, 5, types, places);
    }
}

void ibshift_events_raise(enum ibshift_event_kind kind, const struct ibshift_event *event)
{
    if (NULL != handles[kind]) {
        ibshift_compat_raise(handles[kind], event);
    }
}
