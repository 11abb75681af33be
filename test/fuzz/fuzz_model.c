#include <stdlib.h>
#include <string.h>

#include "fuzz_fabric.h"
#include "choose/param.h"

/* What is taken is written as text that says the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[IBSHIFT_TEXT_ERROR], text[8192], twice[8192];
    struct ibshift_costs costs, again;

    if (ibshift_costs_parse((const char *)data, size, "fuzz", &costs, error) != 0) {
        return 0;
    }
    int length = ibshift_costs_format(&costs, text, sizeof(text));
    if (length >= (int)sizeof(text) ||
        ibshift_costs_parse(text, (size_t)length, "again", &again, error) != 0 ||
        ibshift_costs_format(&again, twice, sizeof(twice)) != length || strcmp(text, twice) != 0 ||
        ibshift_costs_format(&again, text + length / 2, 0) != length) {
        abort();
    }
    return 0;
}
