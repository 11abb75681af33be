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

int program_comm_ranks(const struct program *program, uint32_t comm)
{
    int fewer = (int)comm / 2;

    return fewer < program->ranks - 1 ? program->ranks - fewer : 2;
}

bool program_is_odd(const struct program *program, int item, int rank)
{
    const struct program_item *what = &program->item[item];
    uint64_t ranks = (uint64_t)program_comm_ranks(program, what->comm);

    return what->kind == PROGRAM_UNLIKE && rank == (int)(what->seed >> 32 & 0xff) % (int)ranks;
}

int program_host_of(const struct program *program, int rank)
{
    int ranks = program->ranks, hosts = program->hosts;

    return ranks > hosts ? rank / ((ranks + hosts - 1) / hosts) : rank;
}

static void make_item(struct program_item *item, uint64_t *random)
{
    static const enum program_kind kinds[] = {PROGRAM_CALL,  PROGRAM_CALL,  PROGRAM_CALL,
                                              PROGRAM_BEGIN, PROGRAM_BEGIN, PROGRAM_TAPE,
                                              PROGRAM_TAPE,  PROGRAM_FREE};

    *item = (struct program_item){
        .kind = kinds[below(random, 8)],
        .comm = (uint32_t)below(random, 1 + below(random, PROGRAM_COMMS)),
        .alg = (uint32_t)below(random, ibshift_alg_count),
        .repeats = 1 + (uint32_t)below(random, 4),
        .seed = program_random(random),
    };
    if (item->kind == PROGRAM_FREE && below(random, 2) == 0) {
        item->kind = below(random, 16) == 0 ? PROGRAM_UNLIKE : PROGRAM_CALL;
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
    case FAULT_NO_ROOM:
    case FAULT_NO_COPY:
        act->at = 1;
        act->count = act->fault == FAULT_NO_COPY ? UINT32_MAX : act->count;
        break;
    default:
        act->at = below(random, 1ull << (8 + below(random, 16)));
    }
}

void program_make(struct program *program, uint64_t seed)
{
    static const uint32_t eager[] = {64, 1024, 16384};
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
    uint64_t random = seed;

    *program = (struct program){.seed = seed};
    program->ranks = 2 + (int)below(&random, 4);
    program->hosts = 1 + (int)below(&random, (uint64_t)program->ranks);
    program->has_node = below(&random, 4) != 0;
    program->rings = (uint32_t)below(&random, 4);
    program->ports = 1 + (int)below(&random, 2);
    program->queue = 8u << below(&random, 4);
    program->connections = (uint32_t)below(&random, 3);
    program->is_adaptive = below(&random, 2);
    program->has_paths = below(&random, 2);
    program->eager = eager[below(&random, 3)];
    program->memory = 1u << (20 + below(&random, 3));
    program->locked = below(&random, 2) == 0 ? SIZE_MAX : (size_t)8 << 20;
    snprintf(program->adapter, sizeof(program->adapter),
             "--quiet --memory 1 --hosts %d --seed %llu %s", program->hosts,
             (unsigned long long)(seed % 1000000 + 1),
             adapters[below(&random, sizeof(adapters) / sizeof(adapters[0]))]);
    program->items = 8 + (int)below(&random, PROGRAM_ITEMS - 8);
    for (int i = 0; i < program->items; i++) {
        make_item(&program->item[i], &random);
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
    static const char *const kinds[] = {"call", "begin", "tape", "free", "not alike"};

    printf("seed %llu: %d ranks on %d hosts, %s, ports %d, rings %u, queue %u, connections %u, "
           "adaptive %d, eager %u, %zu bytes%s%s%s; softhca-run %s\n",
           (unsigned long long)program->seed, program->ranks, program->hosts,
           program->has_node ? "shared memory" : "adapter alone", program->ports, program->rings,
           program->queue, program->connections, program->is_adaptive, program->eager,
           program->memory, program->knows_ends ? ", ends are known" : "",
           program->has_stranger ? ", a stranger" : "",
           program->has_stale ? ", files of others" : "", program->adapter);
    for (int i = 0; i < program->items; i++) {
        const struct program_item *item = &program->item[i];
        const struct ibshift_alg *alg = ibshift_alg_table[item->alg];

        if (!item->is_dropped) {
            printf("  item %d: %s comm %u (%d ranks) %s %s, %u times\n", i, kinds[item->kind],
                   item->comm, program_comm_ranks(program, item->comm),
                   ibshift_collective_name(alg->collective), alg->name, item->repeats);
        }
    }
    for (int i = 0; i < program->acts; i++) {
        if (!program->act[i].is_dropped) {
            print_act(&program->act[i]);
        }
    }
}
