/* The compiled form: what is written is what is read; every damaged file is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiled.h"
#include "proof/compare.h"
#include "route/verify.h"
#include "fabric/shape/order.h"
#include "fabric/graph/random.h"
#include "fabric/read/read.h"
#include "fabric/read/synth.h"
#include "unit.h"

static char path[] = "/tmp/ibshift-compiled-XXXXXX";

static struct ibshift_fabric *synthetic(const char *text)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err = {""};

    if (ibshift_synth_fabric(text, &f, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return f;
}

static void compile(const struct ibshift_fabric *f)
{
    struct ibshift_shape shape;
    struct ibshift_error err;
    uint32_t *order, count;

    assert_int_equal(ibshift_shape_find(f, &shape, &err), 0);
    assert_int_equal(ibshift_order_keepers(f, &shape, &order, &count, &err), 0);
    write_compiled(path, f, order, count);
    free(order);
    ibshift_shape_free(&shape);
}

static void what_is_read_is_what_was_written(void **state)
{
    struct ibshift_fabric *f = synthetic("kary:4,3/hosts=60:1/lmc=1"), *g = NULL;
    struct ibshift_error err;
    struct route_proof before, after;
    struct ibshift_imprint imprint;

    f->imprint =
        (struct ibshift_imprint){0xfe80000000000001, 0x2c903, 1700000000, 1700003600, 506, 12, 0};
    compile(f);
    assert_int_equal(ibshift_compiled_read(path, &g, &err), 0);
    assert_memory_equal(&g->imprint, &f->imprint, sizeof(imprint));
    assert_int_equal(ibshift_compiled_imprint(path, &imprint, &err), 0);
    assert_memory_equal(&imprint, &f->imprint, sizeof(imprint));
    assert_int_equal(fabric_compare(g, f, true, &err), 0);
    assert_int_equal(g->order_count, 64);
    route_verify_tables(f, &before);
    route_verify_tables(g, &after);
    assert_memory_equal(&before, &after, sizeof(before));
    assert_string_equal(ibshift_host_name(g, 7), ibshift_host_name(f, 7));
    ibshift_fabric_free(g);
    ibshift_fabric_free(f);
}

static void a_host_has_one_place_in_the_order(void **state)
{
    struct ibshift_fabric *f = synthetic("kary:4,2"), *g = NULL;
    struct ibshift_error err;
    uint32_t order[] = {3, 1, IBSHIFT_NO_HOST, 3};

    write_compiled(path, f, order, 3);
    assert_int_equal(ibshift_compiled_read(path, &g, &err), 0);
    ibshift_fabric_free(g);
    write_compiled(path, f, order, 4);
    assert_int_not_equal(ibshift_compiled_read(path, &g, &err), 0);
    ibshift_fabric_free(f);
}

static size_t slurp(unsigned char *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    size_t size = fread(bytes, 1, room, file);

    fclose(file);
    return size;
}

static int read_bytes(const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    struct ibshift_fabric *g = NULL;
    struct ibshift_error err = {""};
    int rc;

    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    rc = ibshift_compiled_read(path, &g, &err);
    assert_true((rc == 0) == (err.text[0] == '\0'));
    ibshift_fabric_free(g);
    return rc;
}

static void every_damage_is_refused(void **state)
{
    static unsigned char bytes[65536], damaged[65536];
    struct ibshift_fabric *f = synthetic("kary:2,2");
    uint64_t seed = 20260101;
    size_t size;

    compile(f);
    ibshift_fabric_free(f);
    size = slurp(bytes, sizeof(bytes));
    assert_int_equal(read_bytes(bytes, size), 0);
    for (size_t cut = 0; cut < size; cut += 13) {
        assert_true(read_bytes(bytes, cut) < 0);
    }
    assert_true(read_bytes(bytes, size + 1) < 0);
    for (int i = 0; i < 500; i++) {
        size_t at = ibshift_random_below(&seed, (uint32_t)size);

        memcpy(damaged, bytes, size);
        damaged[at] ^= (unsigned char)(1u << ibshift_random_below(&seed, 8));
        if (at >= sizeof(struct ibshift_compiled_header) || at < 20) {
            int rc = read_bytes(damaged, size);

            /* padding between sections is nobody's */
            assert_true(rc < 0 || damaged[at] == (1u << __builtin_ctz(damaged[at])));
        }
    }
}

/* A correct checksum over wrong indices: written by someone who means it. */
static void wrong_indices_are_refused(void **state)
{
    struct ibshift_fabric *f = synthetic("kary:2,2"), *g = NULL;
    struct ibshift_error err;
    uint32_t keep = f->hosts[1];

    f->hosts[1] = 1u << 30;
    write_compiled(path, f, NULL, 0);
    assert_true(ibshift_compiled_read(path, &g, &err) < 0);
    f->hosts[1] = keep;
    f->ports[3].peer = f->port_count;
    write_compiled(path, f, NULL, 0);
    assert_true(ibshift_compiled_read(path, &g, &err) < 0);
    f->ports[3].peer = IBSHIFT_NO_PORT;
    write_compiled(path, f, NULL, 0);
    assert_true(ibshift_compiled_read(path, &g, &err) < 0);
    ibshift_fabric_free(f);
    f = synthetic("kary:2,2");
    f->lft[3] = 200;
    write_compiled(path, f, NULL, 0);
    assert_true(ibshift_compiled_read(path, &g, &err) < 0);
    assert_non_null(strstr(err.text, "out of range"));
    ibshift_fabric_free(f);
}

/* A port that a switch has not, at every place of a row; with few ports, and with so many that their
 * numbers fill a byte. */
static void ports_out_of_range_are_refused(void **state)
{
    static const char *const texts[] = {"kary:4,2", "pgft:1;130;1;1"};

    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
        struct ibshift_fabric *f = synthetic(texts[t]), *g = NULL;
        unsigned ports = f->nodes[f->switches[0]].port_count;
        struct ibshift_error err;

        for (uint32_t i = 0; i < f->lft_stride; i++) {
            uint8_t keep = f->lft[i];

            f->lft[i] = (uint8_t)ports;
            write_compiled(path, f, NULL, 0);
            assert_int_equal(ibshift_compiled_read(path, &g, &err), 0);
            ibshift_fabric_free(g);
            f->lft[i] = (uint8_t)(i % 2 == 0 ? ports + 1 : 255);
            write_compiled(path, f, NULL, 0);
            assert_true(ibshift_compiled_read(path, &g, &err) < 0);
            f->lft[i] = keep;
        }
        ibshift_fabric_free(f);
    }
}

/* The file is cut and overwritten where it lies while a job uses it: what was read stays. */
static void a_file_may_change_after_it_was_read(void **state)
{
    struct ibshift_fabric *f = synthetic("kary:4,3"), *g = NULL;
    struct ibshift_error err = {""};

    compile(f);
    assert_int_equal(ibshift_compiled_read(path, &g, &err), 0);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(fabric_compare(g, f, true, &err), 0);
    assert_string_equal(ibshift_host_name(g, 7), ibshift_host_name(f, 7));
    assert_int_equal(g->lft[g->lft_stride - 1], f->lft[f->lft_stride - 1]);
    ibshift_fabric_free(g);
    ibshift_fabric_free(f);
}

/* Nobody writes into the pipe: to wait for it would be to wait for ever. */
static void what_is_no_file_is_refused(void **state)
{
    char pipe[64];
    struct ibshift_imprint imprint;
    struct ibshift_fabric *g = NULL;
    struct ibshift_error err = {""};

    snprintf(pipe, sizeof(pipe), "%s.pipe", path);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(ibshift_compiled_read(pipe, &g, &err), -EINVAL);
    assert_non_null(strstr(err.text, "not a file"));
    assert_int_equal(ibshift_compiled_imprint(pipe, &imprint, &err), -EINVAL);
    assert_int_equal(unlink(pipe), 0);
    assert_int_equal(ibshift_compiled_read("/dev/zero", &g, &err), -EINVAL);
    assert_int_equal(truncate(path, 1ll << 40), 0);
    assert_int_equal(ibshift_compiled_read(path, &g, &err), -EFBIG);
    assert_non_null(strstr(err.text, "at most"));
    assert_int_equal(truncate(path, 0), 0);
}

static int set_up(void **state)
{
    int fd = mkstemp(path);

    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_what_was_written),
        cmocka_unit_test(a_host_has_one_place_in_the_order),
        cmocka_unit_test(every_damage_is_refused),
        cmocka_unit_test(wrong_indices_are_refused),
        cmocka_unit_test(ports_out_of_range_are_refused),
        cmocka_unit_test(a_file_may_change_after_it_was_read),
        cmocka_unit_test(what_is_no_file_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
