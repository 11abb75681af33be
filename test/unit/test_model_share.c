/* Ranks that share processors and ports: who they are, and the price in closed form. */
#include "choose/crowd.h"
#include "choose/price.h"
#include "unit.h"

static const struct ibshift_model model = {.latency = 10,
                                           .send_max = 1,
                                           .send_min = 1,
                                           .recv_max = 2,
                                           .recv_min = 2,
                                           .gap = 0.5,
                                           .gap_byte = 1e-2,
                                           .at_once = 10000,
                                           .free_messages = 1};

static const uint32_t together[] = {0, 0, 0, 0}, apart[] = {0, 1, 2, 3};

static struct ibshift_price price(const char *name, enum ibshift_collective collective,
                                  uint64_t bytes, const struct ibshift_crowd *crowd,
                                  const struct ibshift_model *m)
{
    struct ibshift_plan plan = {.ranks = 4, .radix = 1, .segments = 1, .commutative = true};
    struct ibshift_price_request request = {.alg = ibshift_alg_find(collective, name),
                                            .plan = &plan,
                                            .model = m,
                                            .bytes = bytes,
                                            .crowd = crowd,
                                            .element = 1};
    struct ibshift_price result;

    assert_non_null(request.alg);
    assert_int_equal(0, ibshift_price(&request, &result));
    return result;
}

static struct ibshift_crowd crowd_of(const uint32_t *host_of, const uint32_t *port_of,
                                     const uint32_t *processors)
{
    return (struct ibshift_crowd){
        .hosts = 4, .ports = 4, .host_of = host_of, .port_of = port_of, .processors = processors};
}

/* Recursive doubling: two rounds, each rank sends and receives one message in each. */
static void processors_are_shared_out(void **state)
{
    static const double path = 2 * (1 + 10 + 2), work = 8 * (1 + 2);

    for (uint32_t c = 1; c <= 5; c++) {
        const uint32_t processors[] = {c, c, c, c};
        struct ibshift_crowd crowd = crowd_of(together, apart, processors);
        struct ibshift_price p = price("recursive_doubling", IBSHIFT_ALLREDUCE, 1, &crowd, &model);
        double expected = c >= 4 ? path : work / c + path * (1 - 1.0 / c);

        expected = expected > path ? expected : path;
        assert_float_equal(p.last, expected, 1e-9);
        assert_int_equal(p.of, expected > path ? IBSHIFT_PRICE_PROCESSORS : IBSHIFT_PRICE_PATH);
    }
}

static void hosts_of_one_rank_share_nothing(void **state)
{
    static const uint32_t processors[] = {1, 1, 1, 1};
    struct ibshift_crowd crowd = crowd_of(apart, apart, processors);

    for (uint64_t bytes = 1; bytes <= 1000; bytes += 999) {
        assert_float_equal(price("linear", IBSHIFT_ALLTOALL, bytes, &crowd, &model).last,
                           price("linear", IBSHIFT_ALLTOALL, bytes, NULL, &model).last, 1e-9);
    }
}

/* All twelve messages leave through one port; the first is free of its gap. */
static void a_port_lets_out_one_after_another(void **state)
{
    static const uint32_t processors[] = {4, 4, 4, 4};
    struct ibshift_crowd crowd = crowd_of(together, together, processors);
    struct ibshift_price p = price("linear", IBSHIFT_ALLTOALL, 1001, &crowd, &model);

    assert_float_equal(p.last, 11 * 0.5 + 12 * 10, 1e-9);
    assert_int_equal(p.of, IBSHIFT_PRICE_PORT);
}

/* Where processors are few, messages count more than rounds. */
static void fewer_messages_win_on_shared_processors(void **state)
{
    static const uint32_t few[] = {1, 1, 1, 1}, many[] = {4, 4, 4, 4};
    struct ibshift_crowd crowded = crowd_of(together, apart, few);
    struct ibshift_crowd alone = crowd_of(together, apart, many);

    assert_true(price("linear", IBSHIFT_ALLREDUCE, 8, &alone, &model).last <
                price("recursive_doubling", IBSHIFT_ALLREDUCE, 8, &alone, &model).last);
    assert_true(price("linear", IBSHIFT_ALLREDUCE, 8, &crowded, &model).last >
                price("recursive_doubling", IBSHIFT_ALLREDUCE, 8, &crowded, &model).last);
}

/* One message: its bytes pass through the sender's processor. */
static void the_sender_moves_its_bytes(void **state)
{
    struct ibshift_model software = model;

    software.gap_byte = 0;
    software.send_byte = 0.1;
    assert_float_equal(price("linear", IBSHIFT_SCATTER, 100, NULL, &software).last,
                       3 * (1 + 10) + 10 + 2, 1e-9);
}

/* Up to S both sides copy; above it neither does, and the bytes move when the grant is there. */
static void both_sides_copy_a_short_message(void **state)
{
    struct ibshift_model copied = model;

    copied.gap = copied.gap_byte = 0;
    copied.send_byte = 0.1;
    copied.eager_byte = 0.01;
    copied.at_once = 100;
    assert_float_equal(price("linear", IBSHIFT_SCATTER, 100, NULL, &copied).last,
                       3 * (1 + 10 + 1) + 10 + 2 + 1, 1e-9);
    copied.eager_byte = 0;
    assert_float_equal(price("linear", IBSHIFT_SCATTER, 100, NULL, &copied).last,
                       3 * (1 + 10) + 10 + 2, 1e-9);
    copied.at_once = 99; /* grants come after 1 + 10, and are received for 2 each */
    copied.eager_byte = 0.01;
    assert_float_equal(price("linear", IBSHIFT_SCATTER, 100, NULL, &copied).last,
                       11 + 3 * (2 + 1 + 10) + 2 * 10, 1e-9);
}

/* A chain of three hops, on hosts with fewer processors than ranks. */
static void each_hop_waits_for_its_turn(void **state)
{
    struct ibshift_model waiting = model;

    waiting.wake = 5;
    for (uint32_t c = 1; c <= 5; c++) {
        const uint32_t processors[] = {c, c, c, c};
        struct ibshift_crowd crowd = crowd_of(together, apart, processors);
        struct ibshift_price p = price("linear", IBSHIFT_SCAN, 1, &crowd, &waiting);
        double without = price("linear", IBSHIFT_SCAN, 1, &crowd, &model).last;
        double path = 3 * (1 + 10 + 2), shared = 3 * (1 + 2) / (double)c + path * (1 - 1.0 / c);

        assert_int_equal(p.hops, 3);
        if (c < 4) {
            shared += 3 * 5 * (4.0 / c - 1);
            assert_float_equal(p.last, shared > path ? shared : path, 1e-9);
        } else {
            assert_float_equal(p.last, without, 1e-9);
        }
    }
}

static void hops_are_of_the_longest_chain(void **state)
{
    assert_int_equal(price("linear", IBSHIFT_ALLTOALL, 8, NULL, &model).hops, 1);
    assert_int_equal(price("linear", IBSHIFT_GATHER, 8, NULL, &model).hops, 1);
    assert_int_equal(price("ring", IBSHIFT_ALLGATHER, 8, NULL, &model).hops, 3);
    assert_int_equal(price("recursive_doubling", IBSHIFT_ALLREDUCE, 8, NULL, &model).hops, 2);
    assert_int_equal(price("linear", IBSHIFT_GATHER, 20000, NULL, &model).hops, 2);
}

static void places_are_numbered_as_ranks_come(void **state)
{
    static const struct ibshift_place places[] = {{9, 70, 4, false}, {0, 50, 2, false},
                                                  {9, 60, 8, false}, {5, 70, 1, false},
                                                  {0, 50, 2, false}, {9, 60, 6, false}};
    static const uint32_t hosts[] = {0, 1, 0, 2, 1, 0}, ports[] = {0, 1, 2, 0, 1, 2};
    static const uint32_t processors[] = {8, 2, 1};
    struct ibshift_crowd crowd;
    uint32_t which;

    assert_int_equal(ibshift_crowd_make(places, 6, &crowd), 0);
    assert_int_equal(crowd.hosts, 3);
    assert_int_equal(crowd.ports, 3);
    assert_memory_equal(crowd.host_of, hosts, sizeof(hosts));
    assert_memory_equal(crowd.port_of, ports, sizeof(ports));
    assert_memory_equal(crowd.processors, processors, sizeof(processors));
    assert_false(crowd.is_crowded);
    assert_int_equal(crowd.most, 3);
    assert_int_equal(ibshift_crowd_most(crowd.host_of, 6, crowd.hosts, &which), 3);
    assert_int_equal(which, 0);
    assert_int_equal(ibshift_crowd_most(crowd.port_of + 1, 5, crowd.ports, &which), 2);
    assert_int_equal(which, 1);
    ibshift_crowd_free(&crowd);
    assert_null(crowd.host_of);
    ibshift_crowd_free(&crowd);
}

/* One host of many is enough; also where others of the job have the rest of one host's processors. */
static void a_rank_without_a_processor_makes_a_crowd(void **state)
{
    static const struct ibshift_place hosts[] = {
        {1, 1, 2, false}, {2, 2, 1, false}, {1, 1, 2, false}, {2, 2, 1, false}};
    static const struct ibshift_place others[] = {{1, 1, 2, false}, {2, 2, 2, true}};
    static const struct {
        const struct ibshift_place *places;
        uint32_t ranks;
        bool is_crowded;
    } rows[] = {{hosts, 3, false}, {hosts, 4, true}, {others, 1, false}, {others, 2, true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibshift_crowd crowd;

        assert_int_equal(ibshift_crowd_make(rows[i].places, rows[i].ranks, &crowd), 0);
        assert_int_equal(crowd.is_crowded, rows[i].is_crowded);
        ibshift_crowd_free(&crowd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processors_are_shared_out),
        cmocka_unit_test(hosts_of_one_rank_share_nothing),
        cmocka_unit_test(a_port_lets_out_one_after_another),
        cmocka_unit_test(fewer_messages_win_on_shared_processors),
        cmocka_unit_test(the_sender_moves_its_bytes),
        cmocka_unit_test(both_sides_copy_a_short_message),
        cmocka_unit_test(each_hop_waits_for_its_turn),
        cmocka_unit_test(hops_are_of_the_longest_chain),
        cmocka_unit_test(places_are_numbered_as_ranks_come),
        cmocka_unit_test(a_rank_without_a_processor_makes_a_crowd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
