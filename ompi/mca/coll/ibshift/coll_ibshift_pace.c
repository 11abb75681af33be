#include "coll_ibshift_pace.h"
#include "coll_ibshift_call.h"
#include "coll_ibshift_choose.h"
#include "coll_ibshift_fabric_file.h"

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t resync = 10ull * 1000 * 1000 * 1000; /* ns */
static struct ibshift_pace wish;
static bool is_auto = true;

void ibshift_pace_open(void)
{
    char why[160];

    is_auto = 0 == strcmp(ibshift_params.pace, "auto");
    if (!is_auto && 0 != ibshift_pace_parse(ibshift_params.pace, &wish, why, sizeof(why))) {
        ibshift_help_once_a_job("bad-pace", why);
        is_auto = true;
    }
}

static uint32_t all_hosts(const mca_coll_ibshift_module_t *module)
{
    bool is_ordered = NULL != module->order.order || NULL != module->order.stages;

    return is_ordered && NULL != ibshift_fabric_file() ? ibshift_fabric_file()->host_count : 0;
}

/* Of the slowest host's cable, from the file that all ranks have; 0: it does not say. */
static uint64_t link_kib(void)
{
    const struct ibshift_fabric *fabric = ibshift_fabric_file();
    uint32_t rate = 0;

    for (uint32_t i = 0; NULL != fabric && i < fabric->host_count; i++) {
        uint32_t cable = fabric->ports[fabric->hosts[i]].rate.mbps;

        rate = 0 == rate || (0 != cable && cable < rate) ? cable : rate;
    }
    return 0 == rate ? 0 : 8192ull * 1000 / rate;
}

/* Model times are in us. */
static void decide(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                   const struct ibshift_op_params *params, struct ibshift_paced *paced)
{
    uint64_t kib = link_kib();
    const struct ibshift_model *model = ibshift_choose_model();
    struct ibshift_pace_facts facts = {
        .bytes = job->bytes,
        .eager = ibshift_params.eager_limit,
        .time = 1e3 * model->gap_byte * (double)job->bytes,
        .latency = 1e3 * model->latency,
        .ranks = module->size,
        .all_hosts = all_hosts(module),
        .has_free_steps = 0 != (params->alg->flags & (IBSHIFT_ALG_ORDER | IBSHIFT_ALG_STAGES)),
    };

    if (is_auto) {
        ibshift_pace_choose(&facts, &paced->pace, &paced->reason);
    } else {
        paced->pace = wish;
        paced->reason = "asked for";
    }
    paced->pace.delay = (uint64_t)facts.latency;
    paced->pace.kib = 0 != kib ? kib : (uint64_t)(1024e3 * model->gap_byte);
    paced->pace.sync = resync;
    paced->pace.clock = &module->pacing.clock;
    paced->pace.memory = &paced->memory;
}

static void explain(const struct ompi_communicator_t *comm, const struct ibshift_job *job,
                    const struct ibshift_paced *paced)
{
    char pace[32];

    ibshift_pace_format(&paced->pace, pace, sizeof(pace));
    fprintf(stderr, "ibshift: %s: %s of %llu B: pace %s; %s\n", comm->c_name, job->name,
            (unsigned long long)job->bytes, pace, paced->reason);
}

void ibshift_pace_look(const struct ompi_communicator_t *comm,
                       const struct ibshift_op_params *params)
{
    static bool has_said; /* a race says it twice */

    if (NULL != params->pace && params->pace->memory->jumps > 0 && !has_said) {
        has_said = true;
        ibshift_help("clock-jumped", comm->c_name, params->rank, ompi_process_info.nodename);
    }
}

int ibshift_pace_find(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                      const struct ibshift_job *job, struct ibshift_op_params *params)
{
    struct ibshift_paced **place = &module->pacing.by_class[ibshift_size_class(job->bytes)];

    params->pace = NULL;
    if (IBSHIFT_ALLTOALL != job->collective || module->size < 2 ||
        (IBSHIFT_ALG_SIZES == job->needs ? is_auto || IBSHIFT_PACE_CLK == wish.kind
                                         : job->bytes <= ibshift_params.eager_limit)) {
        return OMPI_SUCCESS;
    }
    if (NULL == *place) {
        *place = calloc(1, sizeof(**place));
        if (NULL == *place) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        decide(module, job, params, *place);
        if (ibshift_params.explain && 0 == module->rank) {
            explain(comm, job, *place);
        }
    }
    if (ibshift_pace_is_plug(&(*place)->pace)) {
        params->pace = &(*place)->pace;
    } else if (IBSHIFT_PACE_WINDOW == (*place)->pace.kind) {
        params->window = (*place)->pace.window;
        params->piece = (*place)->pace.piece;
    }
    return OMPI_SUCCESS;
}

void ibshift_pacing_free(struct ibshift_pacing *pacing)
{
    for (int i = 0; i < IBSHIFT_SIZE_CLASSES; i++) {
        free(pacing->by_class[i]);
        pacing->by_class[i] = NULL;
    }
}
