/* Messages longer than S: they leave with their receiver's grant, and their sender waits for the
 * acknowledgement. */
#include <string.h>

#include "choose/price.h"
#include "choose/size.h"
#include "plan/walk.h"
#include "unit.h"

static const struct ibshift_model model = {.latency = 10,
                                           .send_max = 1,
                                           .send_min = 1,
                                           .recv_max = 2,
                                           .recv_min = 2,
                                           .gap = 0.5,
                                           .gap_byte = 1e-2,
                                           .at_once = 1000,
                                           .free_messages = 1};

static double price(const char *name, enum ibshift_collective collective, uint32_t ranks,
                    uint64_t bytes, uint32_t segments, const struct ibshift_model *m)
{
    struct ibshift_plan plan = {
        .ranks = ranks, .radix = 1, .segments = segments, .commutative = true};
    struct ibshift_price_request request = {.alg = ibshift_alg_find(collective, name),
                                            .plan = &plan,
                                            .model = m,
                                            .bytes = bytes,
                                            .element = 1};
    struct ibshift_price result;

    assert_non_null(request.alg);
    assert_int_equal(0, ibshift_price(&request, &result));
    return result.last;
}

/* The same in pieces of so many bytes, and how many messages or pieces are posted. */
static double price_pieces(uint32_t ranks, uint64_t bytes, uint32_t piece,
                           const struct ibshift_model *m, uint64_t *posts)
{
    struct ibshift_plan plan = {.ranks = ranks, .segments = 1};
    struct ibshift_price_request request = {.alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "linear"),
                                            .plan = &plan,
                                            .model = m,
                                            .bytes = bytes,
                                            .element = 1,
                                            .piece = piece};
    struct ibshift_price result;

    assert_int_equal(0, ibshift_price(&request, &result));
    assert_int_equal(result.messages, ranks * (ranks - 1));
    *posts = result.posts;
    return result.last;
}

/* A lone message waits a round trip for each further piece; among many the link is what takes time, until posts
 * take more; and short messages, or pieces that are no shorter, are as whole ones. */
static void pieces_cost_posts(void **state)
{
    struct ibshift_model dear = model;
    uint64_t posts;
    double whole = price_pieces(2, 2000, 0, &model, &posts), many, in_pieces;

    assert_int_equal(posts, 2);
    assert_float_equal(price_pieces(2, 2000, 500, &model, &posts), whole + 3 * 20, 0.1);
    assert_int_equal(posts, 2 * 4);
    assert_true(price_pieces(2, 2000, 2000, &model, &posts) == whole);
    assert_int_equal(posts, 2);
    assert_true(price_pieces(2, 1000, 500, &model, &posts) ==
                price_pieces(2, 1000, 0, &model, &posts));
    many = price_pieces(33, 100000, 0, &model, &posts);
    in_pieces = price_pieces(33, 100000, 10000, &model, &posts);
    assert_int_equal(posts, 33 * 32 * 10);
    assert_true(in_pieces >= many && in_pieces < many * 1.05);
    dear.send_min = dear.send_max = 500;
    assert_true(price_pieces(33, 100000, 10000, &dear, &posts) >= 32 * 10 * 500);
}

/* One message: what two ranks do, in closed form. */
static void grant_goes_before_a_long_message(void **state)
{
    assert_float_equal(price("linear", IBSHIFT_BCAST, 2, 1000, 1, &model), 1 + 9.99 + 10 + 2, 1e-9);
    assert_float_equal(price("linear", IBSHIFT_BCAST, 2, 2000, 1, &model),
                       1 + 10 + 2 + 1 + 19.99 + 2 * 10, 1e-9);
}

/* The receives of a ring are all posted at once: only the first message waits for its grant. */
static void later_grants_are_there(void **state)
{
    struct ibshift_model without = model;
    double here, there;

    without.at_once = 0;
    here = price("ring", IBSHIFT_ALLGATHER, 8, 100000, 1, &model);
    there = price("ring", IBSHIFT_ALLGATHER, 8, 100000, 1, &without);
    assert_true(here > there + model.latency);
    assert_true(here < there + 3 * model.latency);
}

/* A pipeline whose pieces are short does not wait at all. */
static void short_pieces_do_not_wait(void **state)
{
    struct ibshift_model without = model;

    without.at_once = 0;
    assert_float_equal(price("chain", IBSHIFT_BCAST, 8, 64000, 64, &model),
                       price("chain", IBSHIFT_BCAST, 8, 64000, 64, &without), 1e-6);
    assert_true(price("chain", IBSHIFT_BCAST, 8, 64000, 32, &model) >
                price("chain", IBSHIFT_BCAST, 8, 64000, 32, &without) + model.latency);
}

/* R comes with each message that needs a grant, whether it had to wait for it or not. */
static void a_granted_message_costs_more(void **state)
{
    struct ibshift_model more = model;
    double before, after;

    more.granted = 5;
    assert_true(price("linear", IBSHIFT_BCAST, 2, 1000, 1, &more) ==
                price("linear", IBSHIFT_BCAST, 2, 1000, 1, &model));
    assert_float_equal(price("linear", IBSHIFT_BCAST, 2, 2000, 1, &more),
                       5 + price("linear", IBSHIFT_BCAST, 2, 2000, 1, &model), 1e-9);
    before = price("ring", IBSHIFT_ALLGATHER, 8, 2000, 1, &model);
    after = price("ring", IBSHIFT_ALLGATHER, 8, 2000, 1, &more);
    assert_float_equal(after, before + 7 * 5, 1e-6);
}

/* Two ranks exchange their vectors: blocking calls that come again have the grants. From the length on
 * whose scratch is not kept, and for the linear plan's way back, which is not into scratch, they have not. */
static void grants_that_stand_are_there(void **state)
{
    double grant = model.send_min + model.latency + model.recv_min; /* then the message is posted */

    assert_float_equal(price("recursive_doubling", IBSHIFT_ALLREDUCE, 2, 65536, 1, &model) + grant +
                           model.gap_byte,
                       price("recursive_doubling", IBSHIFT_ALLREDUCE, 2, 65537, 1, &model), 1e-6);
    assert_float_equal(price("exchange", IBSHIFT_REDUCE, 2, 65536, 1, &model) + model.gap_byte,
                       price("exchange", IBSHIFT_REDUCE, 2, 65537, 1, &model), 1);
}

/* From this size on no grant stands, and the vector is as good as the same: a plan that can be had at
 * this price with waiting for its grants is not dearer without. One plan of these is: any list scheduling may lose where messages come
 * earlier (Graham 1969). Plans of messages up to S have no grants. */
static void a_grant_that_stands_makes_nothing_dearer(void **state)
{
    static const enum ibshift_collective with[] = {IBSHIFT_ALLREDUCE, IBSHIFT_REDUCE_SCATTER};
    static const uint32_t ranks_of[] = {2, 3, 4, 7, 8, 16, 48};
    const struct ibshift_model switched = {.latency = 0.001,
                                           .send_max = 0.39,
                                           .send_min = 0.34,
                                           .recv_max = 0.325,
                                           .recv_min = 0.325,
                                           .gap = 0.095,
                                           .granted = 0.002,
                                           .gap_byte = 4e-5,
                                           .at_once = 1000,
                                           .free_messages = 1};
    const struct ibshift_model *models[] = {&model, &switched};

    for (int i = 0; i < 2 * 2 * 7; i++) {
        const struct ibshift_model *m = models[i / 14];
        enum ibshift_collective collective = with[i % 2];
        uint32_t ranks = ranks_of[i % 14 / 2];
        uint64_t most = IBSHIFT_STANDING_MOST / (collective == IBSHIFT_ALLREDUCE ? 1 : ranks);

        for (size_t row = 0; row < ibshift_alg_count; row++) {
            const struct ibshift_alg *alg = ibshift_alg_table[row];
            struct ibshift_plan plan = {
                .ranks = ranks, .radix = 1, .segments = 1, .commutative = true};
            double stands, waits;

            if (alg->collective != collective || ibshift_alg_check(alg, &plan, NULL, 0) != 0) {
                continue;
            }
            bool is_overtaken = m == &model && ranks == 48 && collective == IBSHIFT_ALLREDUCE &&
                                strcmp(alg->name, "exchange") == 0;
            stands = price(alg->name, collective, ranks, most, 1, m);
            waits = price(alg->name, collective, ranks, most + 1, 1, m);
            if (stands > waits * (is_overtaken ? 1.025 : 1 + 1e-9)) {
                fail_msg("%s, %u ranks, model %d: %g us, waiting %g", alg->name, ranks, i / 14,
                         stands, waits);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_cost_posts),
        cmocka_unit_test(grant_goes_before_a_long_message),
        cmocka_unit_test(later_grants_are_there),
        cmocka_unit_test(a_granted_message_costs_more),
        cmocka_unit_test(short_pieces_do_not_wait),
        cmocka_unit_test(grants_that_stand_are_there),
        cmocka_unit_test(a_grant_that_stands_makes_nothing_dearer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
