#include "tune/tune.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "choose/digest.h"
#include "net/verbs/blob.h"

/* The component's parameter, where the environment has it. */
static const char *setting(const char *name)
{
    char variable[64];
    const char *value;

    snprintf(variable, sizeof(variable), "OMPI_MCA_coll_ibshift_%s", name);
    value = getenv(variable);
    return value != NULL ? value : "";
}

static int give_address(void *context, uint32_t peer, void *card, size_t size)
{
    const struct tune_card *of = &((const struct tune_wires *)context)->cards[peer];

    memcpy(card, of->address, of->address_size < size ? of->address_size : size);
    return of->address_size > 0 ? (int)of->address_size : -ENOENT;
}

static int give_node(void *context, uint32_t peer, struct ibshift_node_card *card)
{
    const struct tune_wires *wires = context;

    return ibshift_node_card_decode(&wires->cards[peer].node, sizeof(*card), card);
}

/* Opens the device and fills the own card. */
static void open_verbs(struct tune_wires *w)
{
    struct ibshift_verbs_options options = {
        .ports = setting("device"), .max_ports = 1, .gid_index = -1, .survives_fork = true};
    struct tune_card *own = &w->cards[w->rank];
    struct ibshift_verbs_blob blob;
    size_t size;
    const void *address;

    if (ibshift_verbs_open(&options, &w->verbs, w->why[TUNE_FABRIC], TUNE_TEXT) != 0) {
        w->verbs = NULL;
        return;
    }
    address = ibshift_verbs_card(w->verbs, &size);
    ibshift_verbs_kind(w->verbs, own->device, sizeof(own->device), &own->mbps);
    ibshift_verbs_firmware(w->verbs, own->firmware, sizeof(own->firmware));
    if (size <= TUNE_ADDRESS && ibshift_verbs_blob_decode(address, size, &blob) == 0) {
        memcpy(own->address, address, size);
        own->address_size = (uint32_t)size;
        own->host = blob.host;
        own->port = ibshift_digest(IBSHIFT_DIGEST, &blob.address[0], sizeof(blob.address[0]));
    }
}

static uint32_t looks_of(bool is_crowded)
{
    return is_crowded ? IBSHIFT_NODE_LOOKS_CROWDED : IBSHIFT_NODE_LOOKS;
}

static void open_node(struct tune_wires *w)
{
    struct ibshift_node_options options = {.self = (uint32_t)w->rank,
                                           .memory = 4 << 20,
                                           .may_copy = true,
                                           .card = give_node,
                                           .context = w};
    int local, place;
    MPI_Comm host;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, w->rank, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &local);
    MPI_Comm_rank(host, &place);
    w->cards[w->rank].machine = w->rank;
    MPI_Bcast(&w->cards[w->rank].machine, 1, MPI_INT, 0, host);
    MPI_Comm_free(&host);
    w->is_crowded = (uint32_t)local > ibshift_processors_count(NULL);
    options.is_gauged = !w->is_crowded;
    options.looks = looks_of(w->is_crowded);
    options.processes = (uint32_t)local;
    options.place = (uint32_t)place;
    if (local < 2 || strcmp(setting("node"), "0") == 0) {
        snprintf(w->why[TUNE_NODE], TUNE_TEXT, "%s",
                 local < 2 ? "its host has one rank only" : "coll_ibshift_node is 0");
    } else if (ibshift_net_node_create(&options, &w->net[TUNE_NODE], w->why[TUNE_NODE],
                                       TUNE_TEXT) != 0) {
        w->net[TUNE_NODE] = NULL;
    } else {
        w->cards[w->rank].node = *ibshift_net_node_card(w->net[TUNE_NODE]);
    }
}

static void open_far_net(struct tune_wires *w)
{
    struct ibshift_net_verbs_options options = ibshift_net_verbs_defaults;
    uint64_t eager = strtoull(setting("eager_limit"), NULL, 0);
    size_t least;

    options.self = (uint32_t)w->rank;
    options.peers = (uint32_t)w->ranks;
    options.card = give_address;
    options.context = w;
    options.max_eager = eager >= 64 && eager <= 65536 ? eager : options.max_eager;
    least = ibshift_net_verbs_memory_min(&options);
    options.memory = options.memory < least ? least : options.memory;
    if (ibshift_net_verbs_create(w->verbs, &options, &w->net[TUNE_FABRIC], w->why[TUNE_FABRIC],
                                 TUNE_TEXT) != 0) {
        w->net[TUNE_FABRIC] = NULL;
    }
}

static int open_engines(struct tune_wires *w)
{
    static const bool has_threads = false;
    const struct ibshift_engine_options options = {
        .patience = 1000000000u, .deadline = 60ull * 1000000000u, .has_threads = &has_threads};

    for (int level = 0; level < TUNE_LEVELS; level++) {
        if (w->net[level] != NULL) {
            w->engine[level] = ibshift_engine_create(w->net[level], &options);
            if (w->engine[level] == NULL) {
                return -ENOMEM;
            }
            ibshift_engine_enter(w->engine[level], 1);
        }
    }
    return 0;
}

int tune_wires_open(struct tune_wires *w)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w->ranks);
    w->cards = calloc((size_t)w->ranks, sizeof(*w->cards));
    if (w->cards == NULL) {
        return -ENOMEM;
    }
    (void)gethostname(w->cards[w->rank].hostname, IBSHIFT_MADE_TEXT - 1);
    open_verbs(w);
    open_node(w);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, w->cards, sizeof(*w->cards), MPI_BYTE,
                  MPI_COMM_WORLD);
    if (w->verbs != NULL) {
        open_far_net(w);
    }
    return open_engines(w);
}

void tune_wires_close(struct tune_wires *w)
{
    for (int level = 0; level < TUNE_LEVELS; level++) {
        if (w->engine[level] != NULL) {
            ibshift_engine_free(w->engine[level]);
        }
        if (w->net[level] != NULL) {
            ibshift_net_destroy(w->net[level]);
        }
    }
    if (w->verbs != NULL) {
        ibshift_verbs_close(w->verbs);
    }
    free(w->cards);
}

void tune_wires_crowd(struct tune_wires *w, bool is_crowded)
{
    w->is_crowded = is_crowded;
    if (w->net[TUNE_NODE] != NULL) {
        ibshift_net_node_look(w->net[TUNE_NODE], looks_of(is_crowded));
    }
}

uint64_t tune_wires_eager(const struct tune_wires *w, enum tune_level level)
{
    return w->net[level] != NULL ? w->net[level]->max_eager : 0;
}

static bool are_near(const struct tune_card *a, const struct tune_card *b)
{
    return a->node.magic != 0 && b->node.magic != 0 && ibshift_node_is_near(&a->node, &b->node);
}

static int near_partner(const struct tune_wires *w, char *why, size_t size)
{
    for (int rank = 1; rank < w->ranks; rank++) {
        if (are_near(&w->cards[0], &w->cards[rank])) {
            return rank;
        }
    }
    snprintf(why, size, "no other rank shares memory with rank 0 (%s)",
             w->net[TUNE_NODE] == NULL ? w->why[TUNE_NODE] : "start two on its host");
    return -1;
}

/* Another host, or another port where ranks of this one talk through the adapter too. */
static int far_partner(const struct tune_wires *w, char *why, size_t size)
{
    const struct tune_card *own = &w->cards[0];
    int found = -1;

    if (own->address_size == 0) {
        snprintf(why, size, "rank 0 has no adapter: %s", w->why[TUNE_FABRIC]);
        return -1;
    }
    for (int rank = w->ranks - 1; rank > 0; rank--) {
        const struct tune_card *card = &w->cards[rank];
        bool is_other_host = card->host != own->host;

        if (card->address_size > 0 &&
            (is_other_host || (card->port != own->port && !are_near(own, card)))) {
            found = rank;
        }
    }
    if (found < 0) {
        snprintf(why, size, "no rank is on another host than rank 0: start one there");
    } else if (strcmp(w->cards[found].device, own->device) != 0 ||
               w->cards[found].mbps != own->mbps) {
        snprintf(why, size, "ranks 0 and %d have unlike adapters: %s with %u Mb/s and %s with %u",
                 found, own->device, own->mbps, w->cards[found].device, w->cards[found].mbps);
        found = -1;
    }
    return found;
}

int tune_wires_partner(const struct tune_wires *w, enum tune_level level, char *why, size_t size)
{
    return level == TUNE_NODE ? near_partner(w, why, size) : far_partner(w, why, size);
}
