/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
/*
 * The three forms of one collective: no header, but what coll_ibshift_entry.c includes for each, with
 *
 *     NAME, KIND       Open MPI's name of it, and its enum ibshift_collective
 *     PARAMS(...)      its parameters before the communicator, followed by those in parentheses
 *     ARGS(...)        the same of the arguments
 *     RAW              its struct ibshift_raw, of the arguments and module
 *
 * Each form has a short way, the tape of the latest call if that was like this one, and a function
 * for the rest, which is not in line: so the short way has hardly a frame. What
 * the rest refuses runs in the fallback.
 */
#ifdef NAME

__attribute__((noinline)) static int THE(NAME, _slowly)(PARAMS(struct ompi_communicator_t *comm,
                                                               mca_coll_ibshift_module_t *module,
                                                               struct ibshift_tape_run *run))
{
    const struct ibshift_called called = {STRING(NAME), IBSHIFT_BLOCKING, KIND, RAW};
    int rc = call_blocking(module, comm, &called, run);

    return is_refused(module, &called, rc)
               ? module->fallback.THE(coll_,
                                      NAME)(ARGS(comm, module->fallback.JOIN(coll_, NAME, _module)))
               : rc;
}

static int THE(NAME,
               _blocking)(PARAMS(struct ompi_communicator_t *comm, mca_coll_base_module_t *base))
{
    mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;
    struct ibshift_tape_run *run = ibshift_tape_latest(module, IBSHIFT_BLOCKING, KIND, RAW);

    return NULL != run && ibshift_call_run(module, run)
               ? OMPI_SUCCESS
               : THE(NAME, _slowly)(ARGS(comm, module, run));
}

__attribute__((noinline)) static int
JOIN(i, NAME, _slowly)(PARAMS(struct ompi_communicator_t *comm, ompi_request_t **request,
                              mca_coll_ibshift_module_t *module, struct ibshift_tape_run *run))
{
    const struct ibshift_called called = {"i" STRING(NAME), IBSHIFT_NONBLOCKING, KIND, RAW};
    int rc = ibshift_call(module, comm, &called, run, request);

    return is_refused(module, &called, rc)
               ? module->fallback.THE(coll_i, NAME)(
                     ARGS(comm, request, module->fallback.JOIN(coll_i, NAME, _module)))
               : rc;
}

static int THE(NAME, _nonblocking)(PARAMS(struct ompi_communicator_t *comm,
                                          ompi_request_t **request, mca_coll_base_module_t *base))
{
    mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;
    struct ibshift_tape_run *run = ibshift_tape_latest(module, IBSHIFT_NONBLOCKING, KIND, RAW);

    return NULL != run && ibshift_call_at_once(module, run, request)
               ? OMPI_SUCCESS
               : JOIN(i, NAME, _slowly)(ARGS(comm, request, module, run));
}

static int THE(NAME, _persistent)(PARAMS(struct ompi_communicator_t *comm, struct ompi_info_t *info,
                                         ompi_request_t **request, mca_coll_base_module_t *base))
{
    mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;
    const struct ibshift_called called = {STRING(NAME) "_init", IBSHIFT_PERSISTENT, KIND, RAW};
    int rc = ibshift_call(module, comm, &called, NULL, request);

    return is_refused(module, &called, rc)
               ? module->fallback.JOIN(coll_, NAME, _init)(
                     ARGS(comm, info, request, module->fallback.JOIN(coll_, NAME, _init_module)))
               : rc;
}

void THE(ibshift_install_, NAME)(mca_coll_base_module_t *module)
{
    module->THE(coll_, NAME) = THE(NAME, _blocking);
    module->THE(coll_i, NAME) = THE(NAME, _nonblocking);
    module->JOIN(coll_, NAME, _init) = THE(NAME, _persistent);
}

#undef NAME
#undef KIND
#undef PARAMS
#undef ARGS
#undef RAW
#endif
