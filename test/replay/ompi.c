#include "ompi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/op/base/base.h"
#include "ompi/op/op.h"
#include "ompi/proc/proc.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_component_repository.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/hwloc/base/base.h"
#include "opal/memoryhooks/memory.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/arch.h"
#include "opal/util/output.h"
#include "scheduler.h"
#include "story.h"

#if OMPI_MAJOR_VERSION != 4
#error "the stand-in is for Open MPI 4.1"
#endif

/* A communicator of a class of our own: Open MPI's is known to tables of its libraries. */
typedef ompi_communicator_t comm_t;
struct inside {
    ompi_group_t group;
    mca_coll_base_comm_coll_t coll;
    struct ompi_proc_t *members[PROGRAM_RANKS];
    uint32_t mask; /* of the members */
    bool has_failed;
};

static void comm_destruct(comm_t *comm);
static OBJ_CLASS_INSTANCE(comm_t, opal_object_t, NULL, comm_destruct);

/* A process's own, which the component would find in Open MPI's libraries. */
ompi_predefined_communicator_t ompi_mpi_comm_world;
opal_pointer_array_t ompi_mpi_communicators, ompi_request_f_to_c_table;
volatile int32_t ompi_mpi_state = OMPI_MPI_STATE_INIT_COMPLETED;
ompi_request_t ompi_request_empty;
struct orte_proc_info_t orte_process_info;
mca_base_framework_t ompi_coll_base_framework;
hwloc_topology_t opal_hwloc_topology;
bool opal_uses_threads;
int opal_leave_pinned = -1;

int ompi_item;
static struct {
    uint64_t fallbacks;
    opal_progress_callback_t progress;
    char host[16];
    bool has_failed; /* a collective, on any communicator */
} own;

int opal_hwloc_base_get_topology(void)
{
    return OPAL_ERR_NOT_FOUND; /* all ports are as near */
}

int opal_mem_hooks_support_level(void)
{
    return OPAL_MEMORY_FREE_SUPPORT | OPAL_MEMORY_MUNMAP_SUPPORT;
}

void opal_output(int stream, const char *format, ...)
{
    (void)stream;
    replay_say("%s", format);
}

int ompi_mpi_abort(struct ompi_communicator_t *comm, int code)
{
    (void)comm, (void)code;
    replay_give_up(__FILE__, __LINE__);
    return OMPI_ERROR;
}

int opal_progress_register(opal_progress_callback_t callback)
{
    own.progress = callback;
    return OPAL_SUCCESS;
}

int opal_progress_unregister(opal_progress_callback_t callback)
{
    (void)callback;
    own.progress = NULL;
    return OPAL_SUCCESS;
}

int ompi_progress_once(void)
{
    return own.progress == NULL ? 0 : own.progress();
}

void opal_progress(void)
{
    if (ompi_progress_once() == 0) {
        replay_idle();
    }
}

/* Parameters: "name=value ..." of the program; a choice is its number. */
static const char *find_in(const char *settings, const char *name, char *value, size_t size)
{
    size_t length = strlen(name);

    for (const char *at = settings; *at != '\0'; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            snprintf(value, size, "%.*s", (int)strcspn(at + length + 1, " "), at + length + 1);
            return value;
        }
    }
    return NULL;
}

static const char *set_to(const char *name, char *value, size_t size)
{
    const struct program *program = replay_program();
    const char *found =
        replay_self() == program->odd_rank ? find_in(program->odd, name, value, size) : NULL;

    return found != NULL ? found : find_in(program->parameters, name, value, size);
}

int mca_base_component_var_register(const mca_base_component_t *component, const char *name,
                                    const char *help, mca_base_var_type_t type,
                                    mca_base_var_enum_t *choices, int bind,
                                    mca_base_var_flag_t flags, mca_base_var_info_lvl_t level,
                                    mca_base_var_scope_t scope, void *storage)
{
    static char texts[8][160];
    static int count;
    const char *value = set_to(name, texts[count], sizeof(texts[count]));

    if (value == NULL && strcmp(name, "site") == 0) {
        value = strcpy(texts[count], "");
    }
    if (value == NULL) {
        return 0;
    }
    if (type == MCA_BASE_VAR_TYPE_STRING) {
        *(char **)storage = texts[count++];
    } else if (type == MCA_BASE_VAR_TYPE_BOOL) {
        *(bool *)storage = value[0] != '0';
    } else if (type == MCA_BASE_VAR_TYPE_SIZE_T) {
        *(size_t *)storage = strtoull(value, NULL, 0);
    } else {
        *(int *)storage = atoi(value);
    }
    return 0;
}

int mca_base_component_pvar_register(const mca_base_component_t *component, const char *name,
                                     const char *help, mca_base_var_info_lvl_t level, int class,
                                     mca_base_var_type_t type, mca_base_var_enum_t *choices,
                                     int bind, mca_base_pvar_flag_t flags,
                                     mca_base_get_value_fn_t get, mca_base_set_value_fn_t set,
                                     mca_base_notify_fn_t notify, void *context)
{
    return 0;
}

int mca_base_var_enum_create(const char *name, const mca_base_var_enum_value_t *values,
                             mca_base_var_enum_t **choices)
{
    return OPAL_ERR_NOT_SUPPORTED;
}

/* No other component is there to borrow from. */
int mca_base_component_repository_get_components(mca_base_framework_t *framework,
                                                 opal_list_t **found)
{
    return OPAL_ERR_NOT_FOUND;
}

int mca_base_framework_components_register(mca_base_framework_t *framework,
                                           mca_base_register_flag_t flags)
{
    return OPAL_SUCCESS;
}

int mca_base_framework_components_open(mca_base_framework_t *framework, mca_base_open_flag_t flags)
{
    return OPAL_SUCCESS;
}

int mca_base_framework_components_close(mca_base_framework_t *framework,
                                        const mca_base_component_t *skip)
{
    return OPAL_SUCCESS;
}

static int put_card(opal_pmix_scope_t scope, opal_value_t *value)
{
    struct replay_card *card = replay_card(replay_self());

    (void)scope;
    if ((size_t)value->data.bo.size > sizeof(card->bytes)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    card->size = (size_t)value->data.bo.size;
    memcpy(card->bytes, value->data.bo.bytes, card->size);
    replay_spoil_card(card);
    return OPAL_SUCCESS;
}

static int get_card(const opal_process_name_t *name, const char *key, opal_list_t *info,
                    opal_value_t **value)
{
    const struct replay_card *card = replay_card((int)name->vpid);

    (void)key, (void)info;
    if (card->size == 0) {
        return OPAL_ERR_NOT_FOUND;
    }
    *value = OBJ_NEW(opal_value_t);
    (*value)->data.bo.size = (int32_t)card->size;
    (*value)->data.bo.bytes = memcpy(malloc(card->size), card->bytes, card->size);
    return OPAL_SUCCESS;
}

opal_pmix_base_module_t opal_pmix = {.put = put_card, .get = get_card};

struct ompi_proc_t *ompi_group_get_proc_ptr_raw(ompi_group_t *group, int rank)
{
    return group->grp_proc_pointers[rank];
}

/* What is beneath the component: it has all functions, and they do nothing. */
static int fallback(void)
{
    own.fallbacks++;
    return OMPI_SUCCESS;
}

uint64_t ompi_fallbacks(void)
{
    return own.fallbacks;
}

#define INSTALL_SLOT(name)                                                                         \
    if (NULL != module->coll_##name) {                                                             \
        if (NULL != coll->coll_##name##_module) {                                                  \
            OBJ_RELEASE(coll->coll_##name##_module);                                               \
        }                                                                                          \
        coll->coll_##name = module->coll_##name;                                                   \
        coll->coll_##name##_module = module;                                                       \
        OBJ_RETAIN(module);                                                                        \
    }
#define INSTALL(name) IBSHIFT_FORMS(INSTALL_SLOT, name)

/* As Open MPI puts them into the slots: who is asked last has them. */
static void install(mca_coll_base_comm_coll_t *coll, mca_coll_base_module_t *module)
{
    IBSHIFT_NATIVE(INSTALL)
    OBJ_RELEASE(module);
}

#define FALLBACK_SLOT(name) module->coll_##name = (void *)(uintptr_t)fallback;
#define FALLBACK(name)      IBSHIFT_FORMS(FALLBACK_SLOT, name)

static void select_modules(comm_t *comm)
{
    mca_coll_base_module_t *module = OBJ_NEW(mca_coll_base_module_t);
    int priority;

    IBSHIFT_NATIVE(FALLBACK)
    install(comm->c_coll, module);
    module = mca_coll_ibshift_comm_query(comm, &priority);
    if (NULL != module && OMPI_SUCCESS == module->coll_module_enable(module, comm)) {
        install(comm->c_coll, module);
    } else if (NULL != module) {
        OBJ_RELEASE(module);
    }
}

#define LEAVE_SLOT(name)                                                                           \
    if (NULL != coll->coll_##name##_module->coll_module_disable) {                                 \
        coll->coll_##name##_module->coll_module_disable(coll->coll_##name##_module, comm);         \
    }                                                                                              \
    OBJ_RELEASE(coll->coll_##name##_module);
#define LEAVE(name) IBSHIFT_FORMS(LEAVE_SLOT, name)

static void comm_destruct(comm_t *comm)
{
    mca_coll_base_comm_coll_t *coll = comm->c_coll;

    IBSHIFT_NATIVE(LEAVE)
    replay_card(replay_self())->numbers &= ~(1ull << comm->c_contextid);
    (void)opal_pointer_array_set_item(&ompi_mpi_communicators, (int)comm->c_contextid, NULL);
    free(comm->c_local_group);
}

static void make_comm(comm_t *comm, uint32_t number, const int *members, int size)
{
    struct inside *inside = calloc(1, sizeof(*inside));
    opal_process_name_t name = *OMPI_PROC_MY_NAME;

    memset((char *)comm + sizeof(opal_object_t), 0, sizeof(*comm) - sizeof(opal_object_t));
    comm->c_contextid = number;
    comm->c_local_group = comm->c_remote_group = &inside->group;
    comm->c_coll = &inside->coll;
    inside->group.grp_proc_count = size;
    inside->group.grp_proc_pointers = inside->members;
    snprintf(comm->c_name, sizeof(comm->c_name), "comm %u", number);
    for (int i = 0; i < size; i++) {
        name.vpid = (uint32_t)members[i];
        inside->mask |= 1u << members[i];
        inside->members[i] = (struct ompi_proc_t *)ompi_proc_name_to_sentinel(name);
        comm->c_my_rank = members[i] == replay_self() ? i : comm->c_my_rank;
    }
    replay_card(replay_self())->numbers |= 1ull << number;
    (void)opal_pointer_array_set_item(&ompi_mpi_communicators, (int)number, comm);
    select_modules(comm);
}

struct ompi_communicator_t *ompi_comm_create_of(uint32_t number, const int *members, int size)
{
    comm_t *comm = OBJ_NEW(comm_t);

    make_comm(comm, number, members, size);
    return comm;
}

void ompi_comm_let_go(struct ompi_communicator_t *comm)
{
    OBJ_RELEASE(comm);
}

struct ompi_communicator_t *ompi_world(void)
{
    return &ompi_mpi_comm_world.comm;
}

static struct inside *inside_of(const struct ompi_communicator_t *comm)
{
    return (struct inside *)comm->c_local_group;
}

uint32_t ompi_comm_members(const struct ompi_communicator_t *comm)
{
    return inside_of(comm)->mask;
}

void ompi_failed(const struct ompi_communicator_t *comm, int status, int peer)
{
    inside_of(comm)->has_failed = own.has_failed = true;
    replay_explain(ompi_item, status, peer, inside_of(comm)->mask);
}

void ompi_failed_before(const struct ompi_communicator_t *comm)
{
    inside_of(comm)->has_failed = true;
}

void ompi_expect_failures(void)
{
    own.has_failed = true;
}

bool ompi_has_any_failed(void)
{
    return own.has_failed;
}

bool ompi_has_failed(const struct ompi_communicator_t *comm)
{
    return inside_of(comm)->has_failed;
}

bool ompi_comm_is_native(const struct ompi_communicator_t *comm)
{
    return NULL != ibshift_module_of(comm);
}

static int host_of(int rank)
{
    return program_host_of(replay_program(), rank);
}

static void describe_process(void)
{
    int self = replay_self(), here = host_of(self);

    snprintf(own.host, sizeof(own.host), "host%d", here);
    orte_process_info.nodename = own.host;
    orte_process_info.my_name = (orte_process_name_t){.jobid = 0x10001, .vpid = (uint32_t)self};
    orte_process_info.num_procs = (uint32_t)replay_program()->ranks;
    orte_process_info.num_local_peers = -1;
    for (int i = 0; i < replay_program()->ranks; i++) {
        orte_process_info.my_local_rank += i < self && host_of(i) == here;
        orte_process_info.num_local_peers += host_of(i) == here;
    }
}

void ompi_begin(void)
{
    mca_base_component_t *component = &mca_coll_ibshift_component.collm_version;
    int members[PROGRAM_RANKS];

    describe_process();
    opal_uses_threads = replay_program()->has_threads;
    OBJ_CONSTRUCT(&ompi_mpi_communicators, opal_pointer_array_t);
    OBJ_CONSTRUCT(&ompi_request_f_to_c_table, opal_pointer_array_t);
    OBJ_CONSTRUCT(&ompi_coll_base_framework.framework_components, opal_list_t);
    ompi_coll_base_framework.framework_selection = (char *)(uintptr_t) "ibshift,basic";
    ompi_request_empty.req_complete = REQUEST_COMPLETED;
    if (OMPI_SUCCESS != component->mca_register_component_params() ||
        OMPI_SUCCESS != component->mca_open_component() ||
        OMPI_SUCCESS != mca_coll_ibshift_component.collm_init_query(false, false)) {
        replay_fail("rank %d: the component does not open", replay_self());
    }
    replay_barrier(NULL, NULL); /* Open MPI's first: the cards are there */
    for (int i = 0; i < replay_program()->ranks; i++) {
        members[i] = i;
    }
    OBJ_CONSTRUCT(&ompi_mpi_comm_world.comm, comm_t);
    make_comm(&ompi_mpi_comm_world.comm, 0, members, replay_program()->ranks);
}

/* As MPI_T reads them. */
static void look_at_counters(void)
{
    struct ibshift_transport_counters counters;
    struct replay_card *card = replay_card(replay_self());

    ibshift_transport_counters(&counters);
    if (counters.engine.failed_ops > counters.engine.ops ||
        (counters.engine.failed_ops > 0 && !own.has_failed)) {
        replay_fail("rank %d: %llu of %llu collectives have failed, as is counted", replay_self(),
                    (unsigned long long)counters.engine.failed_ops,
                    (unsigned long long)counters.engine.ops);
    }
    card->posted = counters.engine.sends;
    card->received = counters.engine.recvs;
    card->bytes_posted = counters.engine.send_bytes;
    card->carried = counters.net.ring + counters.net.eager + counters.net.rendezvous +
                    counters.node.cells + counters.node.rings + counters.node.direct;
    card->bytes_carried = counters.net.bytes + counters.node.bytes;
    const uint64_t counted[] = {counters.net.pulled,   counters.net.copied, counters.engine.taped,
                                counters.net.ring,     counters.net.eager,  counters.net.rendezvous,
                                counters.net.standing, counters.net.pieces, counters.net.words,
                                counters.node.cells,   counters.node.rings, counters.node.direct,
                                counters.node.held,    counters.net.casts,  counters.net.repairs};
    for (int i = 0; COUNT_PULLED + i < COUNTS; i++) {
        story_count((enum story_count)(COUNT_PULLED + i), counted[i]);
    }
}

void ompi_end(void)
{
    look_at_counters();
    ompi_mpi_state = OMPI_MPI_STATE_FINALIZE_STARTED;
    OBJ_DESTRUCT(&ompi_mpi_comm_world.comm);
    (void)mca_coll_ibshift_component.collm_version.mca_close_component();
    OBJ_DESTRUCT(&ompi_mpi_communicators);
    OBJ_DESTRUCT(&ompi_request_f_to_c_table);
}

/* Once a process, before there are ranks: types and operators are the same for all of them. */
__attribute__((visibility("default"))) void replay_prepare(void);
void replay_prepare(void)
{
    (void)opal_arch_init();
    OBJ_CONSTRUCT(&ompi_op_base_framework.framework_components, opal_list_t);
    if (OMPI_SUCCESS != ompi_datatype_init() || OMPI_SUCCESS != ompi_op_init()) {
        abort();
    }
}
