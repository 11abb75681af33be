#include <stdint.h>
#include <stdlib.h>

#include "msccl/msccl.h"
#include "proof/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A program that is taken has steps that the checker can look at, right or wrong; one that is refused leaves nothing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[IBSHIFT_TEXT_ERROR];
    struct ibshift_msccl program;
    struct ibshift_listed listed;

    if (ibshift_msccl_parse((const char *)data, size, "fuzz", &program, error) != 0) {
        return 0;
    }
    if (ibshift_msccl_list(&program, &listed, error) == 0) {
        const struct ibshift_plan plan = {
            .ranks = listed.ranks, .commutative = true, .listed = &listed};
        const struct ibshift_check check = {.window = 32, .sizes = true};
        struct ibshift_check_result result;

        if (ibshift_listed_row(listed.collective) == NULL) {
            abort();
        }
        (void)ibshift_check_plan(ibshift_listed_row(listed.collective), &plan, &check, &result);
        ibshift_listed_free(&listed);
    }
    ibshift_msccl_free(&program);
    return 0;
}
