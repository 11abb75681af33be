#include "coll_ibshift_call.h"

static bool serves(const struct ibshift_alg *alg, const struct ibshift_job *job)
{
    return alg->collective == job->collective &&
           (0 == job->needs || 0 != (alg->flags & job->needs));
}

static uint32_t radix_for(const struct ibshift_alg *alg)
{
    uint32_t radix = 3;

    return radix < alg->radix_max ? radix : alg->radix_max;
}

int ibshift_choose(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                   struct ibshift_op_params *params)
{
    char why[128];

    params->window = (uint32_t)ibshift_params.window;
    params->plan.segments = 1;
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        params->plan.radix = radix_for(alg);
        if (serves(alg, job) && 0 == ibshift_alg_check(alg, &params->plan, why, sizeof(why))) {
            params->alg = alg;
            return OMPI_SUCCESS;
        }
    }
    return OMPI_ERR_NOT_SUPPORTED;
}
