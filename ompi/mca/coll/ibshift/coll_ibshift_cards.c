/* The cards of a job's processes (job/cards.h) through Open MPI's exchange, and who of a communicator can reach whom. */
#include "coll_ibshift_cards.h"
#include "coll_ibshift.h"
#include "coll_ibshift_params.h"

#include "ompi/group/group.h"
#include "opal/util/arch.h"

#include <stdlib.h>

static bool is_used; /* this process has an endpoint */

static char *receive(uint32_t peer, size_t *size)
{
    opal_process_name_t name = {.jobid = OMPI_PROC_MY_NAME->jobid, .vpid = peer};
    char *received = NULL;
    int rc;

    OPAL_MODEX_RECV(rc, &mca_coll_ibshift_component.collm_version, &name, (void **)&received, size);
    return OPAL_SUCCESS == rc ? received : NULL;
}

void ibshift_card_publish(struct ibshift_card *card)
{
    const struct ibshift_exchange exchange = {opal_local_arch, receive, ibshift_params_differ};
    char bytes[IBSHIFT_CARD_MAX], agreed[1024];
    size_t size;
    int rc;

    card->values.params = ibshift_params_agreed(agreed, sizeof(agreed));
    size = ibshift_cards_open(&exchange, card, agreed, bytes);
    is_used = NULL != card->address || NULL != card->node;
    OPAL_MODEX_SEND(rc, IBSHIFT_MODEX_GLOBAL, &mca_coll_ibshift_component.collm_version, bytes,
                    size);
    (void)rc; /* without a card the others do not find this process, which is right then */
}

/* Once a job: of all its processes, by the first. */
static void report(uint32_t size)
{
    char text[512];
    uint32_t first, count = ibshift_cards_absent(size, &first, text, sizeof(text));

    if (count > 0) {
        ibshift_help_once_a_job("unlike", count, size, first, text);
    }
    if (!ibshift_params.explain && ibshift_cards_keys_apart(size, text, sizeof(text))) {
        ibshift_help("keys-apart", text);
    }
}

uint32_t *ibshift_cards_peers(struct ompi_communicator_t *comm)
{
    uint32_t size = (uint32_t)ompi_comm_size(comm);
    uint32_t *peers = malloc(size * sizeof(*peers));
    bool is_one_job = true; /* another (spawned, connected) has other numbers for its processes */

    for (uint32_t i = 0; NULL != peers && i < size; i++) {
        opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, (int)i);

        peers[i] = name.vpid;
        is_one_job &= name.jobid == OMPI_PROC_MY_NAME->jobid;
    }
    if (NULL == peers || (is_one_job && ibshift_cards_reach(peers, size))) {
        return peers;
    }
    free(peers);
    if (is_used && comm == &ompi_mpi_comm_world.comm && 0 == OMPI_PROC_MY_NAME->vpid) {
        report(size);
    }
    return NULL;
}
