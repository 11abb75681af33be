#include <string.h>

#include "fabric/read/synth.h"
#include "fuzz_fabric.h"

/* Small fabrics only: numbers of more than two digits are cut, so that time goes into the parser.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[96];
    size_t length = 0, digits = 0;
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err;

    for (size_t i = 0; i < size && length < sizeof(text) - 1 && data[i] != '\0'; i++) {
        digits = data[i] >= '0' && data[i] <= '9' ? digits + 1 : 0;
        if (digits < 2) {
            text[length++] = data[i] > '3' && data[i] <= '9' ? '3' : (char)data[i];
        }
    }
    text[length] = '\0';
    if (ibshift_synth_fabric(text, &f, &err) == 0) {
        fuzz_use(f);
        ibshift_fabric_free(f);
    }
    return 0;
}
