#include <stdint.h>
#include <stdlib.h>

#include "choose/digest.h"
#include "choose/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Rules that are taken can be asked and have one digest; those that are refused leave nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[IBSHIFT_TEXT_ERROR];
    struct ibshift_rules rules;

    if (ibshift_rules_parse((const char *)data, size, "fuzz", &rules, error) != 0) {
        if (rules.all != NULL) {
            abort();
        }
        return 0;
    }
    for (int c = 0; c < IBSHIFT_COLLECTIVES; c++) {
        const struct ibshift_rule *rule =
            ibshift_rules_find(&rules, (enum ibshift_collective)c, 0, 8, 4, 4096);

        if (rule != NULL && rule->wish.alg != NULL && (int)rule->wish.alg->collective != c) {
            abort();
        }
    }
    if (ibshift_rules_digest(&rules, IBSHIFT_DIGEST) !=
        ibshift_rules_digest(&rules, IBSHIFT_DIGEST)) {
        abort();
    }
    ibshift_rules_free(&rules);
    return 0;
}
