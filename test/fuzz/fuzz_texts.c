#include <stdlib.h>
#include <string.h>

#include "choose/pace.h"
#include "fuzz_fabric.h"
#include "net/verbs/choice.h"

/* The values of parameters that are little languages: a list of ports, a pace. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct ibshift_port_candidate here[] = {
        {.device = "mlx5_0", .port = 1, .is_active = 1, .rate = 100},
        {.device = "mlx5_0", .port = 2, .is_active = 1, .rate = 100},
        {.device = "a", .port = 1, .is_active = 1, .is_ethernet = 1}};
    char *text = malloc(size + 1), why[64];
    const char *at;
    int chosen[2];
    struct ibshift_pace pace;

    memcpy(text, data, size);
    text[size] = '\0';
    if (ibshift_port_list_check(text, &at) != 0 && (at < text || at > text + strlen(text))) {
        abort();
    }
    if (ibshift_port_choose(here, 3, text, 2, chosen) > 2) {
        abort();
    }
    if (ibshift_pace_parse(text, &pace, why, sizeof(why)) == 0) {
        ibshift_pace_format(&pace, why, sizeof(why));
        if (ibshift_pace_parse(why, &pace, why, sizeof(why)) != 0) {
            abort();
        }
    }
    free(text);
    return 0;
}
