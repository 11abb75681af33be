#include "proof/check_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const check_buffer_name[IBSHIFT_BUFFERS] = {"SEND", "RECV", "TMP"};

int check_fail(struct check_state *state, const struct check_place *place, const char *format, ...)
{
    char *why = state->result->why;
    size_t size = sizeof(state->result->why);
    va_list arguments;
    int used =
        snprintf(why, size, "rank %u round %u step %u: ", place->rank, place->round, place->index);

    va_start(arguments, format);
    vsnprintf(why + used, size - (size_t)used, format, arguments);
    va_end(arguments);
    return -EBADMSG;
}

int ibshift_check_plan(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                       const struct ibshift_check *check, struct ibshift_check_result *result)
{
    struct ibshift_check bounded = *check;
    struct check_state state = {.alg = alg, .plan = plan, .check = &bounded, .result = result};
    int rc;

    if (bounded.window < 1 || bounded.window > IBSHIFT_WINDOW_MAX) {
        bounded.window = bounded.window < 1 ? 1 : IBSHIFT_WINDOW_MAX;
    }
    memset(result, 0, sizeof(*result));
    rc = ibshift_alg_check(alg, plan, result->why, sizeof(result->why));
    if (rc < 0) {
        return rc;
    }
    rc = check_cells_layout(&state);
    if (rc == 0) {
        check_cells_fill(&state);
        rc = check_order_all(&state);
    }
    if (rc == 0) {
        rc = check->seed == 0 ? check_run(&state) : check_disorder(&state);
    }
    if (rc == 0) {
        rc = check_cells_expect(&state);
    }
    free(state.cells);
    free(state.layout);
    return rc;
}
