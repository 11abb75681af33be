/* mca_base_pvar_dump() reads beyond its array: docs/failures.md, "A crash of ompi_info". */
#include "opal_config.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/runtime/opal.h"
#include <stdio.h>

static int zero(const mca_base_pvar_t *pvar, void *value, void *object)
{
    *(int *)value = 0;
    return 0;
}

int main(int argc, char **argv)
{
    mca_base_var_enum_value_t values[] = {{0, "none"}, {1, "ring"}, {0, NULL}};
    mca_base_var_enum_t *names;
    char **lines;
    int index;

    opal_init_util(&argc, &argv);
    mca_base_var_enum_create("names", values, &names);
    index = mca_base_pvar_register("opal", "a", "b", "c", "A description", OPAL_INFO_LVL_1,
                                   MCA_BASE_PVAR_CLASS_STATE, MCA_BASE_VAR_TYPE_INT, names,
                                   MCA_BASE_VAR_BIND_NO_OBJECT, MCA_BASE_PVAR_FLAG_READONLY, zero,
                                   NULL, NULL, NULL);
    mca_base_pvar_dump(index, &lines, MCA_BASE_VAR_DUMP_READABLE);
    for (int i = 0; lines[i] != NULL; i++) {
        printf("%d: %s\n", i, lines[i]);
    }
    return 0;
}
