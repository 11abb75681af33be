#include <stdlib.h>
#include <string.h>

#include "fuzz_fabric.h"
#include "net/verbs/blob.h"
#include "net/verbs/hello.h"

static void use_cards(const struct ibshift_verbs_blob *a, const struct ibshift_verbs_blob *b,
                      const uint8_t *data, size_t size)
{
    uint8_t mine[IBSHIFT_PORTS_MAX], theirs[IBSHIFT_PORTS_MAX];
    struct ibshift_verbs_source source = {
        .qpn = a->ud_qpn, .lid = b->address[0].lid, .route = size >= 40 ? data : NULL};
    int pairs = ibshift_verbs_pair_ports(a, b, mine, theirs);

    if (pairs > a->ports || pairs > b->ports || strlen(a->hostname) >= sizeof(a->hostname)) {
        abort();
    }
    (void)ibshift_verbs_is_from(a, &source);
}

/* What others send before a connection stands: two cards and a HELLO, one behind the other. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ibshift_verbs_blob a, b;
    struct ibshift_hello hello;
    struct ibshift_handshake shake = {0};
    size_t one = size < sizeof(a) ? size : sizeof(a), two = size - one;
    uint8_t again[sizeof(hello)];

    if (ibshift_verbs_blob_decode(data, one, &a) == 0) {
        two = two < sizeof(b) ? two : sizeof(b);
        use_cards(&a, &a, data, size);
        if (ibshift_verbs_blob_decode(data + one, two, &b) == 0) {
            use_cards(&a, &b, data, size);
        }
    }
    if (ibshift_hello_decode(data, size, &hello) == 0) {
        if (hello.rails > IBSHIFT_PORTS_MAX || hello.path > IBSHIFT_PATH_MAX) {
            abort();
        }
        ibshift_hello_encode(&hello, again);
        (void)ibshift_handshake_receive(&shake, hello.flags, hello.rail[0].ece_vendor != 0, 1);
        (void)ibshift_handshake_tick(&shake, UINT64_MAX / 2, hello.flags);
    }
    return 0;
}
