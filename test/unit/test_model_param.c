/* The text of model parameters: units, defaults, and what is refused and how. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "choose/param.h"
#include "unit.h"

#define REQUIRED "L = 1 us\ng = 1 us\no_s = 1 us\no_r = 1 us\n"

/* The model that ibshift_model_read() takes. */
static int parse_bytes(const char *text, size_t length, struct ibshift_model *model, char *error)
{
    struct ibshift_costs costs;
    int rc = ibshift_costs_parse(text, length, "p", &costs, error);

    if (rc == 0) {
        *model = costs.has_far ? costs.far : costs.near;
    }
    return rc;
}

static int parse(const char *text, struct ibshift_model *model, char *error)
{
    return parse_bytes(text, strlen(text), model, error);
}

static void units_are_converted(void **state)
{
    struct ibshift_model m;
    char error[IBSHIFT_TEXT_ERROR];

    assert_int_equal(
        0, parse("# comment\n L = 1300 ns # wire\r\n\no_s_max=2us\no_s_min = 500 ns\n"
                 "o_r = 0.0011 ms\ng = 3 us\nG = 8 Gbit/s\nf = 4\nS = 8 KiB\ncopy = 100 ps/B",
                 &m, error));
    assert_true(m.latency == 1.3 && m.send_max == 2 && m.send_min == 0.5);
    assert_float_equal(m.recv_max, 1.1, 1e-12);
    assert_true(m.recv_min == m.recv_max);
    assert_float_equal(m.gap_byte, 1e-3, 1e-15);
    assert_float_equal(m.copy_byte, 1e-4, 1e-15);
    assert_int_equal(4, m.free_messages);
    assert_true(m.at_once == 8192);
    assert_true(m.reduce_byte == 0);
}

static void format_parses_to_the_same_model(void **state)
{
    struct ibshift_model m;
    char text[1024], error[IBSHIFT_TEXT_ERROR];
    int length = ibshift_model_format(&ibshift_model_example, text, sizeof(text));

    assert_in_range(length, 1, sizeof(text) - 1);
    assert_int_equal(0, parse(text, &m, error));
    assert_memory_equal(&m, &ibshift_model_example, sizeof(m));
}

/* Ranks compare the text: a field that it does not say may differ between them unseen. */
static void format_says_each_field(void **state)
{
    enum { FIELDS = offsetof(struct ibshift_model, free_messages) / sizeof(double) };
    char before[1024], after[1024];

    assert_int_equal(sizeof(struct ibshift_model), (FIELDS + 1) * sizeof(double));
    ibshift_model_format(&ibshift_model_example, before, sizeof(before));
    for (size_t i = 0; i <= FIELDS; i++) {
        struct ibshift_model m = ibshift_model_example;
        double value;

        memcpy(&value, (char *)&m + i * sizeof(value), sizeof(value));
        value += 1;
        memcpy((char *)&m + i * sizeof(value), &value, sizeof(value));
        m.free_messages = ibshift_model_example.free_messages + (i == FIELDS);
        ibshift_model_format(&m, after, sizeof(after));
        assert_string_not_equal(before, after);
    }
}

static void overhead_falls_from_max_to_min(void **state)
{
    const struct ibshift_model *m = &ibshift_model_example;

    assert_true(ibshift_model_send_overhead(m, 1) == 2.0);
    assert_true(ibshift_model_send_overhead(m, 2) == 1.25);
    assert_true(ibshift_model_recv_overhead(m, 1) == 1.5);
    assert_float_equal(ibshift_model_send_overhead(m, 1 << 30), 0.5, 1e-6);
}

static void special_cases_drop_what_the_model_ignores(void **state)
{
    struct ibshift_model gp = ibshift_model_loggp(&ibshift_model_example);
    struct ibshift_model fp = ibshift_model_logfp(&ibshift_model_example);

    assert_true(gp.free_messages == 1 && gp.send_min == 2.0 && gp.gap_byte == 1e-3);
    assert_true(fp.free_messages == 2 && fp.send_min == 0.5 && fp.gap_byte == 0);
}

static void bad_text_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {REQUIRED "x = 1 us\n", "p:5: unknown key 'x'; the keys are L, o_s, o_s_max, o_s_min, o_r, "
                                "o_r_max, o_r_min, g, G, f, O, E, S, R, copy, reduce, w"},
        {"L = -1.3 us\n", "p:1: L is negative: it must be 0 or more"},
        {"L = 1\n", "p:1: L needs a unit of: ns, us, ms, s (found '')"},
        {"G = 1 us\n",
         "p:1: G needs a unit of: ps/B, ns/B, us/B, MB/s, MiB/s, GB/s, GiB/s, Gbit/s (found 'us')"},
        {"G = 0 GB/s\n", "p:1: G is a rate of 0: give a positive rate, or 0 us/B for no cost"},
        {"L = nan us\n", "p:1: L needs a number (found 'nan us')"},
        {"L = 1e300 s\n", "p:1: L is more than 1000 s"},
        {"L = fast\n", "p:1: L needs a number (found 'fast')"},
        {"L 1 us\n", "p:1: expected 'key = number unit' (found 'L 1 us')"},
        {"\nL = 1 us\n\nL = 2 us\n", "p:4: L was set on line 2 already"},
        {"S = 4 us\n", "p:1: S needs a unit of: B, KiB, MiB (found 'us')"},
        {"S = 2000 MiB\n", "p:1: S is more than a gigabyte"},
        {"f = 2 us\n", "p:1: f is a count and has no unit (found 'us')"},
        {"f = 0\n", "p:1: f must be a whole number from 1 to 1024"},
        {"f = 1.5\n", "p:1: f must be a whole number from 1 to 1024"},
        {"", "p: L is missing"},
        {"[made]\ndevice = x\n", "p: L is missing"},
        {"[fabric]\n" REQUIRED "[node]\nL = 1 us\n", "p:6: g is missing"},
        {"[fabric]\n" REQUIRED "[fabric]\n", "p:6: [fabric] was begun on line 1 already"},
        {REQUIRED "[fabric]\n", "p:5: [fabric] was begun on line 1 already"},
        {"[nodes]\n", "p:1: unknown heading '[nodes]'; the headings are [fabric], [node], [made]"},
        {"[made]\nmaker = x\n", "p:2: unknown key 'maker' under [made]; the keys are device, "
                                "speed, ompi, firmware, ibshift, host, date"},
        {"L = 1 us\ng = 1 us\no_s_max = 1 us\no_r = 1 us\n",
         "p: o_s is missing (or o_s_max and o_s_min)"},
        {"L = 1 us\ng = 1 us\no_s_max = 1 us\no_s_min = 2 us\no_r = 1 us\n",
         "p: o_s_min is larger than o_s_max"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ibshift_model m = {.latency = 77};
        char error[IBSHIFT_TEXT_ERROR] = "";

        assert_int_equal(-EINVAL, parse(cases[i].text, &m, error));
        assert_string_equal(cases[i].error, error);
        assert_true(m.latency == 77);
    }
}

static void headings_part_the_levels(void **state)
{
    static const char text[] = "[made]\ndevice = mlx5 101b\nspeed = 200000 Mb/s # cable\n"
                               "[fabric]\n" REQUIRED "[node]\nL = 5 us\ng = 0 us\no_s = 1 us\n"
                               "o_r = 2 us\n";
    char error[IBSHIFT_TEXT_ERROR], again[2048];
    struct ibshift_costs costs, same;
    struct ibshift_model m;

    assert_int_equal(0, ibshift_costs_parse(text, sizeof(text) - 1, "p", &costs, error));
    assert_true(costs.has_far && costs.has_near);
    assert_true(costs.far.latency == 1 && costs.near.latency == 5 && costs.near.recv_max == 2);
    assert_string_equal("mlx5 101b", costs.made.device);
    assert_string_equal("200000 Mb/s", costs.made.speed);
    assert_string_equal("", costs.made.ompi);
    assert_int_equal(0, parse(text, &m, error));
    assert_memory_equal(&m, &costs.far, sizeof(m));

    int length = ibshift_costs_format(&costs, again, sizeof(again));
    assert_in_range(length, 1, sizeof(again) - 1);
    assert_int_equal(length, ibshift_costs_format(&costs, NULL, 0));
    assert_int_equal(0, ibshift_costs_parse(again, (size_t)length, "p", &same, error));
    assert_memory_equal(&same, &costs, sizeof(same));
}

static void a_file_of_a_node_alone(void **state)
{
    static const char text[] = "[node]\n" REQUIRED;
    char error[IBSHIFT_TEXT_ERROR];
    struct ibshift_costs costs;
    struct ibshift_model m;

    assert_int_equal(0, ibshift_costs_parse(text, sizeof(text) - 1, "p", &costs, error));
    assert_true(!costs.has_far && costs.has_near);
    assert_int_equal(0, parse(text, &m, error));
    assert_true(m.latency == 1);
}

static void hostile_bytes_are_refused(void **state)
{
    struct ibshift_model m;
    char error[IBSHIFT_TEXT_ERROR], text[1000];

    memset(text, 'L', sizeof(text));
    assert_int_equal(-EINVAL, parse_bytes(text, sizeof(text), &m, error));
    assert_string_equal("p:1: line is longer than 200 characters", error);
    assert_int_equal(-EINVAL, parse_bytes("L\0= 1 us\n", 9, &m, error));
    assert_string_equal("p:1: line has a zero byte: this is not a text file", error);
    assert_int_equal(-ENOENT, ibshift_model_read("/nonexistent/file", &m, error));
    assert_string_equal("/nonexistent/file: cannot open: No such file or directory", error);
    assert_int_not_equal(0, ibshift_model_read("/", &m, error));
}

static uint64_t seed = 20071;

static uint32_t pick(uint32_t bound)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % bound);
}

/* One change: a byte, a piece of another text, a cut. */
static size_t spoil(char *text, size_t length, size_t room)
{
    static const char *const pieces[] = {
        "= ",   "-",    "1e999", "nan", "inf", "0x1p9",  "us/B", "GB/s",     "#",       "\n",
        "f = ", "G = ", "\t",    "%s",  "\r",  "1e-320", "[",    "[node]\n", "[made]\n"};
    const char *piece = pieces[pick(sizeof(pieces) / sizeof(pieces[0]))];
    size_t at = pick((uint32_t)length + 1), size = strlen(piece);

    switch (pick(4)) {
    case 0:
        text[at] = (char)pick(256);
        return at == length ? length + 1 : length;
    case 1:
        return at;
    default:
        if (length + size > room) {
            return length;
        }
        memmove(text + at + size, text + at, length - at);
        memcpy(text + at, piece, size);
        return length + size;
    }
}

static bool is_sane(const struct ibshift_model *m)
{
    const double *value[] = {&m->latency,     &m->send_max, &m->send_min,  &m->recv_max,
                             &m->recv_min,    &m->gap_byte, &m->gap,       &m->copy_byte,
                             &m->reduce_byte, &m->at_once,  &m->send_byte, &m->eager_byte,
                             &m->wake,        &m->granted};

    for (size_t i = 0; i < sizeof(value) / sizeof(value[0]); i++) {
        if (!(*value[i] >= 0 && *value[i] < 1e300)) {
            return false;
        }
    }
    return m->free_messages >= 1;
}

/* Any bytes are refused with a line, or give a model of finite numbers. */
static void spoilt_text_is_refused_or_sane(void **state)
{
    char good[1024], text[4096], error[IBSHIFT_TEXT_ERROR];
    int length = ibshift_model_format(&ibshift_model_example, good, sizeof(good)), refused = 0;

    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 50000; i++) {
        size_t size = (size_t)length;
        struct ibshift_model m;

        memcpy(text, good, size);
        for (uint32_t changes = 1 + pick(6); changes > 0; changes--) {
            size = spoil(text, size, sizeof(text) - 1);
        }
        if (parse_bytes(text, size, &m, error) != 0) {
            refused++;
            assert_true(error[0] != '\0' && strchr(error, '\n') == NULL);
        } else {
            assert_true(is_sane(&m));
        }
    }
    assert_in_range(refused, 1000, 49950); /* some changes do no harm */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_converted),
        cmocka_unit_test(format_parses_to_the_same_model),
        cmocka_unit_test(format_says_each_field),
        cmocka_unit_test(overhead_falls_from_max_to_min),
        cmocka_unit_test(special_cases_drop_what_the_model_ignores),
        cmocka_unit_test(bad_text_is_refused_with_its_line),
        cmocka_unit_test(headings_part_the_levels),
        cmocka_unit_test(a_file_of_a_node_alone),
        cmocka_unit_test(hostile_bytes_are_refused),
        cmocka_unit_test(spoilt_text_is_refused_or_sane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
