#include "route_verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int route_verify(const route_t *r, uint64_t shift_seed, route_proof_t *proof, ibshift_error_t *err)
{
    const ibshift_fabric_t *f = r->fabric;
    route_deps_t deps = {.vls = r->vl == NULL ? 1 : r->vls_used};
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
    return rc == 0 ? route_verify_shifts(r, shift_seed, proof, err) : rc;
}

bool route_is_proven(const route_proof_t *proof)
{
    return proof->lost + proof->circles + proof->strays == 0 && proof->cycle_length == 0;
}
