/* The closed formulas against the simulation, and the published ones against the exact ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "model/formula.h"
#include "model/price.h"

static struct ibshift_model loggp, logfp;

static double simulate(const struct ibshift_alg *alg, const struct ibshift_model *model,
                       const struct ibshift_formula_case *c)
{
    struct ibshift_plan plan = {.ranks = (uint32_t)c->ranks,
                                .radix = (uint32_t)c->radix,
                                .segments = 1,
                                .commutative = true};
    struct ibshift_price_request request = {
        .alg = alg, .plan = &plan, .model = model, .bytes = (uint64_t)c->bytes};
    struct ibshift_price price;
    char why[256];

    if (ibshift_alg_check(alg, &plan, why, sizeof(why)) != 0) {
        return -1;
    }
    assert_int_equal(0, ibshift_price(&request, &price));
    return price.last;
}

static void assert_same(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b)))) {
        fail_msg("%.12g is not %.12g", a, b);
    }
}

static const struct ibshift_alg *find(const struct ibshift_formula *formula)
{
    int collective = ibshift_collective_find(formula->collective);

    assert_true(collective >= 0);
    return ibshift_alg_find((enum ibshift_collective)collective, formula->algorithm);
}

static int each_case(const struct ibshift_formula *f, const struct ibshift_alg *alg)
{
    int radix_max = alg->radix_max > 0 ? 5 : 1, compared = 0;

    for (int radix = 1; radix <= radix_max; radix++) {
        for (int ranks = 1; ranks <= 128; ranks++) {
            for (int bytes = 1; bytes <= 4096; bytes *= 64) {
                struct ibshift_formula_case c = {ranks, radix, bytes};
                const struct ibshift_model *models[] = {&loggp, &logfp};

                for (int i = 0; i < 2; i++) {
                    double exact = f->exact(models[i], &c);
                    double simulated = exact < 0 ? -1 : simulate(alg, models[i], &c);

                    if (simulated >= 0) {
                        assert_same(simulated, exact);
                        compared++;
                    }
                }
            }
        }
    }
    return compared;
}

static void simulation_equals_the_exact_formulas(void **state)
{
    int compared = 0;

    (void)state;
    for (const struct ibshift_formula *f = ibshift_formulas; f->collective != NULL; f++) {
        const struct ibshift_alg *alg = find(f);

        if (alg != NULL) {
            compared += each_case(f, alg);
        }
    }
    assert_true(compared > 100);
}

static int prepare(void **state)
{
    (void)state;
    loggp = ibshift_model_loggp(&ibshift_model_example);
    logfp = ibshift_model_logfp(&ibshift_model_example);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulation_equals_the_exact_formulas),
    };

    return cmocka_run_group_tests(tests, prepare, NULL);
}
