#include <stdlib.h>
#include <string.h>

#include "fuzz_fabric.h"
#include "choose/param.h"

/* What is taken is written as text that says the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[IBSHIFT_MODEL_ERROR_SIZE], text[4096];
    struct ibshift_model model, again;

    if (ibshift_model_parse((const char *)data, size, "fuzz", &model, error) != 0) {
        return 0;
    }
    int length = ibshift_model_format(&model, text, sizeof(text));
    if (length >= (int)sizeof(text) ||
        ibshift_model_parse(text, (size_t)length, "again", &again, error) != 0 ||
        ibshift_model_format(&again, text + length / 2, 0) != length) {
        abort();
    }
    return 0;
}
