#include "route/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int prove_routes(const struct route *r, struct route_proof *proof, struct ibshift_error *err)
{
    const struct ibshift_fabric *f = r->fabric;
    struct route_deps deps = {.vls = r->vl == NULL ? 1 : r->vls_used};
    int rc;

    memset(proof, 0, sizeof(*proof));
    deps.bits = calloc((size_t)f->port_count * deps.vls * deps.vls + 1, 4 * sizeof(*deps.bits));
    if (deps.bits == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for the dependencies of %u links",
                            f->port_count);
    }
    rc = route_verify_walks(r, proof, &deps, err);
    if (rc == 0) {
        rc = route_verify_cycles(r, &deps, proof, err);
    }
    free(deps.bits);
    return rc;
}

int route_verify(const struct route *r, uint64_t shift_seed, struct route_proof *proof,
                 struct ibshift_error *err)
{
    int rc = prove_routes(r, proof, err);

    return rc == 0 ? route_verify_shifts(r, shift_seed, proof, err) : rc;
}

int route_verify_tables(const struct ibshift_fabric *f, struct route_proof *proof,
                        struct ibshift_error *err)
{
    struct ibshift_fabric tables = *f; /* walked, not changed */
    struct route r = {.fabric = &tables, .threads = 1, .vls = 1, .vls_used = 1};

    return prove_routes(&r, proof, err);
}

bool route_is_proven(const struct route_proof *proof)
{
    return proof->lost + proof->circles + proof->strays == 0 && proof->cycle_length == 0;
}
