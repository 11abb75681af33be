#include "coll_ibshift_pace.h"
#include "coll_ibshift_call.h"
#include "coll_ibshift_fabric.h"

#include <stdlib.h>
#include <string.h>

#include "exec/pace_auto.h"

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

static int class_of(uint64_t bytes, bool is_attended)
{
    int class = bytes <= 1 ? 0 : 64 - __builtin_clzll(bytes - 1);
    int last = IBSHIFT_PACE_CLASSES / 2 - 1;

    return 2 * (class < last ? class : last) + is_attended;
}

static uint32_t all_hosts(const mca_coll_ibshift_module_t *module)
{
    bool is_ordered = NULL != module->route.order || NULL != module->route.stages;

    return is_ordered && NULL != ibshift_fabric_file() ? ibshift_fabric_file()->host_count : 0;
}

/* Model times are in us. */
static void decide(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                   bool is_attended, const struct ibshift_op_params *params,
                   struct ibshift_paced *paced)
{
    const struct ibshift_model *model = ibshift_choose_model();
    struct ibshift_pace_facts facts = {
        .bytes = job->bytes,
        .eager = ibshift_params.eager_limit,
        .time = 1e3 * model->gap_byte * (double)job->bytes,
        .latency = 1e3 * model->latency,
        .jitter = -1,
        .hosts = module->size,
        .all_hosts = all_hosts(module),
        .is_even = 0 == job->needs,
        .is_attended = is_attended,
        .has_free_steps = 0 != (params->alg->flags & (IBSHIFT_ALG_ORDER | IBSHIFT_ALG_STAGES)),
    };

    if (is_auto) {
        ibshift_pace_choose(&facts, &paced->pace, &paced->reason);
    } else {
        paced->pace = wish;
        paced->reason = "asked for";
    }
    paced->pace.delay = (uint64_t)facts.latency;
    paced->pace.kib = (uint64_t)(1024e3 * model->gap_byte);
    paced->pace.sync = resync;
    paced->pace.clock = &module->pacing.clock;
    paced->pace.memory = &paced->memory;
}

int ibshift_pace_find(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                      bool is_attended, struct ibshift_op_params *params)
{
    struct ibshift_paced **place = &module->pacing.by_class[class_of(job->bytes, is_attended)];

    params->pace = NULL;
    if (IBSHIFT_ALLTOALL != job->collective || job->bytes <= ibshift_params.eager_limit ||
        IBSHIFT_ALG_SIZES == job->needs || module->size < 2) {
        return OMPI_SUCCESS;
    }
    if (NULL == *place) {
        *place = calloc(1, sizeof(**place));
        if (NULL == *place) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        decide(module, job, is_attended, params, *place);
    }
    params->pace = IBSHIFT_PACE_NONE == (*place)->pace.kind ? NULL : &(*place)->pace;
    return OMPI_SUCCESS;
}

void ibshift_pacing_free(struct ibshift_pacing *pacing)
{
    for (int i = 0; i < IBSHIFT_PACE_CLASSES; i++) {
        free(pacing->by_class[i]);
        pacing->by_class[i] = NULL;
    }
}
