#include "program.h"

#include <stdio.h>
#include <string.h>

#include "plan/alg.h"

uint64_t program_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t below(uint64_t *random, uint64_t bound)
{
    return program_random(random) % bound;
}

static const struct {
    const char *name;
    enum ibshift_collective kind;
} collectives[PROGRAM_COLLECTIVES] = {
    [PROGRAM_BARRIER] = {"barrier", IBSHIFT_BARRIER},
    [PROGRAM_BCAST] = {"bcast", IBSHIFT_BCAST},
    [PROGRAM_GATHER] = {"gather", IBSHIFT_GATHER},
    [PROGRAM_SCATTER] = {"scatter", IBSHIFT_SCATTER},
    [PROGRAM_ALLGATHER] = {"allgather", IBSHIFT_ALLGATHER},
    [PROGRAM_ALLTOALL] = {"alltoall", IBSHIFT_ALLTOALL},
    [PROGRAM_GATHERV] = {"gatherv", IBSHIFT_GATHER},
    [PROGRAM_SCATTERV] = {"scatterv", IBSHIFT_SCATTER},
    [PROGRAM_ALLGATHERV] = {"allgatherv", IBSHIFT_ALLGATHER},
    [PROGRAM_ALLTOALLV] = {"alltoallv", IBSHIFT_ALLTOALL},
    [PROGRAM_ALLTOALLW] = {"alltoallw", IBSHIFT_ALLTOALL},
    [PROGRAM_REDUCE] = {"reduce", IBSHIFT_REDUCE},
    [PROGRAM_ALLREDUCE] = {"allreduce", IBSHIFT_ALLREDUCE},
    [PROGRAM_SCAN] = {"scan", IBSHIFT_SCAN},
    [PROGRAM_EXSCAN] = {"exscan", IBSHIFT_EXSCAN},
    [PROGRAM_REDUCE_SCATTER_BLOCK] = {"reduce_scatter_block", IBSHIFT_REDUCE_SCATTER},
    [PROGRAM_REDUCE_SCATTER] = {"reduce_scatter", IBSHIFT_REDUCE_SCATTER},
};

const char *program_collective_name(enum program_collective collective)
{
    return collectives[collective].name;
}

enum ibshift_collective program_collective_kind(enum program_collective collective)
{
    return collectives[collective].kind;
}

static uint32_t count_algs(enum program_collective collective)
{
    uint32_t count = 0;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        count += ibshift_alg_table[i]->collective == collectives[collective].kind;
    }
    return count;
}

int program_host_of(const struct program *program, int rank)
{
    int ranks = program->ranks, hosts = program->hosts;

    return ranks > hosts ? rank / ((ranks + hosts - 1) / hosts) : rank;
}

static void make_item(struct program_item *item, uint64_t *random)
{
    static const enum program_kind kinds[] = {
        PROGRAM_CALL,  PROGRAM_CALL,  PROGRAM_CALL,    PROGRAM_CALL,    PROGRAM_CALL, PROGRAM_BEGIN,
        PROGRAM_BEGIN, PROGRAM_BEGIN, PROGRAM_PERSIST, PROGRAM_PERSIST, PROGRAM_WAIT, PROGRAM_MAKE,
        PROGRAM_MAKE,  PROGRAM_FREE,  PROGRAM_UNMAP,   PROGRAM_CALL};

    *item = (struct program_item){
        .kind = kinds[below(random, 16)],
        .comm = (uint32_t)below(random, 1 + below(random, PROGRAM_COMMS)),
        .collective = (enum program_collective)below(random, PROGRAM_COLLECTIVES),
        .repeats = 1 + (uint32_t)below(random, below(random, 8) == 0 ? 40 : 4),
        .seed = program_random(random),
    };
    item->alg = 1 + (uint32_t)below(random, count_algs(item->collective));
    if (item->kind == PROGRAM_CALL && below(random, 32) == 0) {
        item->kind = PROGRAM_UNLIKE;
    }
    if (item->kind == PROGRAM_MAKE) {
        item->comm = 1 + (uint32_t)below(random, PROGRAM_COMMS - 1);
        item->parent =
            (item->comm + 1 + (uint32_t)below(random, PROGRAM_COMMS - 1)) % PROGRAM_COMMS;
        item->parent = below(random, 2) == 0 ? 0 : item->parent;
    }
    if (item->kind == PROGRAM_FREE && item->comm == 0) {
        item->kind = PROGRAM_WAIT;
    }
}

/* Broadcasts, which alone go by multicast; from 1 on among the algorithms, as an item names it. */
static void cast_more(struct program *program, uint64_t *random)
{
    uint32_t alg = 0;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        alg += ibshift_alg_table[i]->collective == IBSHIFT_BCAST;
        if ((ibshift_alg_table[i]->flags & IBSHIFT_ALG_MULTICAST) != 0) {
            break;
        }
    }
    for (int i = 0; i < program->items; i++) {
        struct program_item *item = &program->item[i];

        if (item->kind == PROGRAM_CALL && below(random, 2) == 0) {
            item->collective = PROGRAM_BCAST;
            item->alg = alg;
        }
    }
}

/* From `in` on the host has lost its way to others, or may have: failures name it. */
static void lose_way(struct program_act *act, uint32_t host, uint32_t in)
{
    act->is_lasting = true;
    act->rank = (int)host;
    act->time = in * 1000ull;
}

static void of_adapter(struct program_act *act, const struct program *program, uint64_t *random)
{
    static const char *const events[] = {"lid_change", "port_err", "port_active", "sm_change",
                                         "client_reregister"};
    uint32_t rank = (uint32_t)below(random, (uint64_t)program->ranks);
    uint32_t host = (uint32_t)below(random, (uint64_t)program->hosts);
    uint32_t to = (uint32_t)below(random, (uint64_t)program->hosts);
    uint32_t some = 1 + (uint32_t)below(random, 9);
    uint32_t longer = 1u << below(random, 20), in = longer % 100000;
    char *text = act->text;
    size_t size = sizeof(act->text);

    switch (below(random, 11)) {
    case 0:
        snprintf(text, size, "lose:p=0.0%u", some);
        break;
    case 1:
        snprintf(text, size, "rnr:p=0.%u", some);
        break;
    case 2:
        snprintf(text, size, "slow:rank=%u,delay=%uus", rank, longer % 5000);
        break;
    case 3:
        snprintf(text, size, "down:host=%u,in=%uus,for=%uus", host, in, longer / 16 + 1);
        break;
    case 4:
        lose_way(act, host, in);
        snprintf(text, size, "down:host=%u,in=%uus", host, in);
        break;
    case 5:
        snprintf(text, size, "refuse:p=0.%u", some);
        break;
    case 6:
        lose_way(act, host, in);
        snprintf(text, size, "event:host=%u,in=%uus,type=device_fatal", host, in);
        break;
    case 7:
        snprintf(text, size, "event:host=%u,in=%uus,type=%s", host, in, events[some % 5]);
        break;
    case 8:
        lose_way(act, host, 0);
        snprintf(text, size, "lose:host=%u,to=%u,p=0.%u", host, to, some);
        break;
    case 9:
        lose_way(act, host, in);
        snprintf(text, size, "down:host=%u,in=%uus,for=%ums", host, in, 100 * some * some);
        break;
    default:
        snprintf(text, size, "limit:rank=%u,bytes=%u", rank, longer * 32);
    }
}

static void make_act(struct program_act *act, const struct program *program, uint64_t *random)
{
    *act = (struct program_act){
        .fault = (enum program_fault)below(random, PROGRAM_FAULT_KINDS),
        .rank = (int)below(random, (uint64_t)program->ranks),
        .count = 1 + below(random, 1ull << below(random, 6)),
        .time = below(random, 1ull << below(random, 39)),
    };
    switch (act->fault) {
    case FAULT_OF_ADAPTER:
        of_adapter(act, program, random);
        break;
    case FAULT_NO_MEMORY:
        act->at = 1 + below(random, 1ull << below(random, 13));
        break;
    case FAULT_HOSTILE:
        act->at = below(random, 1ull << (12 + below(random, 8)));
        act->count = below(random, 1ull << below(random, 10));
        break;
    case FAULT_NO_FILE:
    case FAULT_NO_VERB:
        act->at = 1 + below(random, 1ull << below(random, 7));
        break;
    case FAULT_NO_ROOM:
    case FAULT_NO_COPY:
        act->at = 1;
        act->count = act->fault == FAULT_NO_COPY ? UINT32_MAX : act->count;
        break;
    default:
        act->at = below(random, 1ull << (8 + below(random, 16)));
    }
}

static void make_parameters(struct program *program, uint64_t *random)
{
    static const uint32_t eager[] = {64, 1024, 16384};
    static const char *const paces[] = {"auto",     "auto",          "auto",         "none",
                                        "window:2", "window:3/1024", "window:8/256", "window:1",
                                        "window",   "window:0"};
    static const char *const odd[] = {"eager_limit=512", "native=0", "node=0", "pace=none",
                                      "expert=window=7"};
    static const char *const more[] = {"",
                                       "",
                                       "",
                                       "",
                                       "traffic_class=2",
                                       "device=softhca0",
                                       "device=softhca0:1,softhca0:1 ",
                                       "device=none:3,softhca",
                                       "pkey=1",
                                       "service_level=3",
                                       "explain=1",
                                       "gid_index=0"};

    program->has_node = below(random, 4) != 0;
    program->has_multicast = below(random, 4) == 0;
    snprintf(program->parameters, sizeof(program->parameters),
             "deadline=15 multicast=%d %s memory=%u eager_limit=%u ports=%u node=%d pace=%s "
             "expert=adaptive_data=%u,node_memory=%u,window=%u,leader_memory=%u,adaptive=%d",
             program->has_multicast, more[below(random, sizeof(more) / sizeof(more[0]))],
             1u << (20 + below(random, 3) / 2),
             eager[program->has_multicast + below(random, 3 - program->has_multicast)],
             1 + (uint32_t)below(random, 2), program->has_node, paces[below(random, 10)],
             (uint32_t)below(random, 2), 1u << (16 + below(random, 6)),
             1 + (uint32_t)below(random, 32), 64u << below(random, 20), (int)below(random, 3) - 1);
    program->odd_rank = below(random, 32) == 0 ? (int)below(random, (uint64_t)program->ranks) : -1;
    snprintf(program->odd, sizeof(program->odd), "%s", odd[below(random, 5)]);
}

void program_make(struct program *program, uint64_t seed)
{
    static const char *const adapters[] = {"",
                                           "",
                                           "--defer 30",
                                           "--adversarial",
                                           "--defer 200 --adversarial",
                                           "--link eth",
                                           "--adversarial --link eth",
                                           "--ports 2 --adversarial",
                                           "--hcas 2",
                                           "--lmc 2",
                                           "--max-srq-wr 48 --max-cqe 256 --max-inline 0",
                                           "--max-qp-wr 128 --max-sge 2 --adversarial",
                                           "--swap --scatter --defer 20",
                                           "--no-srq --defer 10",
                                           "--grh odd --pkeys 7fff,8001/8001,7fff",
                                           "--relaxed-only --count-queues --max-locked 8388608",
                                           "--personality cx5-ib"};
    static const int ranks[] = {2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 5, 5, 6, 7, 8};
    uint64_t random = seed;

    *program = (struct program){.seed = seed};
    program->ranks =
        below(&random, 64) == 0 ? 9 + (int)below(&random, 8) : ranks[below(&random, 16)];
    program->hosts = 1 + (int)below(&random, (uint64_t)program->ranks);
    program->calls = 1u << below(&random, 4);
    program->rings = (uint32_t)below(&random, 4);
    program->queue = 8u << below(&random, 4);
    program->has_paths = below(&random, 2);
    program->has_cache = below(&random, 4) != 0;
    program->has_threads = below(&random, 4) == 0;
    program->processors = below(&random, 2) == 0 ? 1 : 64;
    program->locked = below(&random, 2) == 0 ? SIZE_MAX : (size_t)8 << 20;
    make_parameters(program, &random);
    snprintf(program->adapter, sizeof(program->adapter),
             "--quiet --memory 1 --hosts %d --seed %llu %s", program->hosts,
             (unsigned long long)(seed % 1000000 + 1),
             adapters[below(&random, sizeof(adapters) / sizeof(adapters[0]))]);
    program->items = 8 + (int)below(&random, PROGRAM_ITEMS - 8);
    for (int i = 0; i < program->items; i++) {
        make_item(&program->item[i], &random);
    }
    if (program->has_multicast) {
        cast_more(program, &random);
    }
    program->knows_ends = below(&random, 2) == 0;
    program->has_stranger = below(&random, 4) == 0;
    program->has_stale = below(&random, 2) == 0;
    program->acts = below(&random, 2) == 0 ? 0 : 1 + (int)below(&random, 3);
    for (int i = 0; i < program->acts; i++) {
        make_act(&program->act[i], program, &random);
    }
}

static void print_act(const struct program_act *act)
{
    static const char *const names[] = {[FAULT_RANK_DIES] = "dies at its branch",
                                        [FAULT_RANK_STOPS] = "stops at its branch",
                                        [FAULT_NO_MEMORY] = "gets no memory from allocation",
                                        [FAULT_NO_ROOM] = "finds no room in shared memory from try",
                                        [FAULT_NO_COPY] = "may not copy between processes from try",
                                        [FAULT_NO_FILE] = "opens and maps no file from try",
                                        [FAULT_NO_VERB] =
                                            "has calls to its adapter refused from number",
                                        [FAULT_CLOCK_JUMPS] = "has a clock that jumps at branch",
                                        [FAULT_HOSTILE] = "has garbage for others from branch"};

    if (act->fault == FAULT_OF_ADAPTER) {
        printf("  fault %s\n", act->text);
    } else {
        printf("  rank %d %s %llu (%llu times, %.3f ms)\n", act->rank, names[act->fault],
               (unsigned long long)act->at, (unsigned long long)act->count,
               (double)act->time / 1e6);
    }
}

void program_print(const struct program *program)
{
    static const char *const kinds[] = {"call", "begin", "persist", "wait",
                                        "make", "free",  "unmap",   "unlike"};

    printf("seed %llu: %d ranks on %d hosts of %d processors, rings %u, queue %u%s%s%s%s%s\n  "
           "softhca-run %s\n  %s\n",
           (unsigned long long)program->seed, program->ranks, program->hosts, program->processors,
           program->rings, program->queue, program->has_cache ? "" : ", no cache of registrations",
           program->has_threads ? ", threads" : "", program->knows_ends ? ", ends are known" : "",
           program->has_stranger ? ", a stranger" : "",
           program->has_stale ? ", files of others" : "", program->adapter, program->parameters);
    if (program->odd_rank >= 0) {
        printf("  rank %d: %s\n", program->odd_rank, program->odd);
    }
    for (int i = 0; i < program->items; i++) {
        const struct program_item *item = &program->item[i];

        if (!item->is_dropped) {
            printf("  item %d: %s comm %u (of %u) %s, %u times\n", i, kinds[item->kind], item->comm,
                   item->parent, collectives[item->collective].name, item->repeats);
        }
    }
    for (int i = 0; i < program->acts; i++) {
        if (!program->act[i].is_dropped) {
            print_act(&program->act[i]);
        }
    }
}
