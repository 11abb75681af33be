/*
 * When a step may start. The executor, the checker, the models and the simulator obey this alone.
 *
 * 1. Steps are of three classes: receives, sends, local ones (copies, reductions). Each class
 *    starts its steps in plan order (round, then index); classes wait for one another through need
 *    and drain only.
 * 2. The next step of a class starts when ibshift_step_is_ready() and fewer than `window` steps of
 *    its class are in flight. A receive is in flight from its posting until its data is there, a
 *    send until its buffer may be overwritten. A local step is complete when it has started.
 * 3. Steps in flight complete in any order.
 *
 * Completions only add readiness, and each class has one next step: so whether plans deadlock does
 * not depend on timing, and plans that end with window 1 and no buffering end with any window.
 */
#ifndef IBSHIFT_PLAN_READY_H
#define IBSHIFT_PLAN_READY_H

#include "plan/step.h"

enum ibshift_class { IBSHIFT_CLASS_RECV, IBSHIFT_CLASS_SEND, IBSHIFT_CLASS_LOCAL, IBSHIFT_CLASSES };

/* Completed prefixes of one rank's rounds. */
struct ibshift_progress {
    uint32_t received; /* receives and local steps of rounds < received are complete */
    uint32_t sent;     /* sends of rounds < sent are complete */
};

static inline enum ibshift_class ibshift_step_class(const struct ibshift_step *step)
{
    return step->kind < IBSHIFT_STEP_COPY ? (enum ibshift_class)step->kind : IBSHIFT_CLASS_LOCAL;
}

static inline bool ibshift_step_is_ready(const struct ibshift_step *step,
                                         const struct ibshift_progress *progress)
{
    return step->need <= progress->received && step->drain <= progress->sent;
}

#endif
