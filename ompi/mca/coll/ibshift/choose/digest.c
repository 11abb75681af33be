#include "choose/digest.h"

#include <string.h>

uint64_t ibshift_digest(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < size; i++) {
        sum = (sum ^ byte[i]) * 0x100000001b3u;
    }
    return sum;
}

/* The text has each field, once; the struct may have gaps. */
uint64_t ibshift_digest_model(uint64_t sum, const struct ibshift_model *model)
{
    char text[1024];
    int length = ibshift_model_format(model, text, sizeof(text));

    return ibshift_digest(sum, text, strnlen(text, (size_t)length));
}
