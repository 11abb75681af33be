#include "choose/pacing.h"

#include "plan/nodes.h"

void ibshift_pacing_add(struct ibshift_pace_facts *facts, const struct ibshift_model *model,
                        const struct ibshift_pacing_fabric *fabric)
{
    bool is_agreed = fabric->hosts != 0;

    facts->all_hosts = fabric->hosts;
    facts->ring = is_agreed ? fabric->ring : 0;
    facts->kib = is_agreed && fabric->kib != 0 ? (double)fabric->kib : 1024e3 * model->gap_byte;
    facts->latency = 1e3 * model->latency; /* us to ns */
    facts->post = 1e3 * model->send_min;
}

struct ibshift_sending ibshift_pacing_sending(const struct ibshift_pace *pace)
{
    return pace->kind == IBSHIFT_PACE_WINDOW
               ? (struct ibshift_sending){.window = pace->window, .piece = pace->piece}
               : (struct ibshift_sending){.window = 0};
}

unsigned long long ibshift_pacing_posts(const struct ibshift_question *question, uint32_t piece)
{
    const struct ibshift_plan *plan = question->plan;
    uint32_t near =
        question->near != NULL ? ibshift_nodes_size(plan, ibshift_nodes_of(plan, 0)) : 1;

    return near - 1 + (plan->ranks - near) * ((question->bytes + piece - 1) / piece);
}
