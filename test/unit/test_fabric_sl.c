/* Service levels of pairs: read from OpenSM's and saquery's path records, kept in the compiled form. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiled.h"
#include "fabric/read/read.h"
#include "fabric/read/synth.h"
#include "unit.h"

static char path[] = "/tmp/ibshift-levels-XXXXXX";
static struct ibshift_fabric *f;
static char *text;

static int level_of(uint32_t a, uint32_t b)
{
    return (int)(a / 2 * 3 + b) % 16;
}

/* As OpenSM's plug-in writes them; a pair may be left out. */
static void path_records(FILE *out, uint32_t without_from, uint32_t without_to)
{
    fprintf(out, "Switch 0x0000000000000001, base LID 200, \"s\", port 0\n# LID  : SL : MTU : "
                 "RATE\n0x0001 : 9  : 4   : 3   \n\n");
    for (uint32_t a = 0; a < f->host_count; a++) {
        fprintf(out, "Channel Adapter 0x%016llx, base LID %u, \"%s\", port 1\n# LID  : SL\n",
                (unsigned long long)f->ports[f->hosts[a]].guid, ibshift_host_lid(f, a),
                ibshift_host_name(f, a));
        for (uint32_t b = 0; b < f->host_count; b++) {
            if (a != without_from || b != without_to) {
                fprintf(out, "0x%04X : %-2d : 4   : 3   \n", ibshift_host_lid(f, b),
                        level_of(a, b));
            }
        }
    }
}

static int read_text(const char *from)
{
    static struct ibshift_error err;
    struct ibshift_lines *lines =
        ibshift_lines_from(fmemopen((void *)(uintptr_t)from, strlen(from), "r"), "records", &err);
    int rc;

    assert_non_null(lines);
    free(text);
    text = NULL;
    rc = ibshift_read_sl(lines, f);
    ibshift_lines_close(lines);
    if (rc != 0) {
        text = strdup(err.text);
    }
    return rc;
}

static void read_records(void)
{
    char *records;
    size_t size;
    FILE *out = open_memstream(&records, &size);

    path_records(out, IBSHIFT_NO_HOST, 0);
    fclose(out);
    assert_int_equal(read_text(records), 0);
    free(records);
}

static void assert_levels(const struct ibshift_fabric *g)
{
    for (uint32_t a = 0; a < g->host_count; a++) {
        for (uint32_t b = 0; b < g->host_count; b++) {
            assert_int_equal(ibshift_fabric_sl(g, a, ibshift_host_lid(g, b)), level_of(a, b));
        }
    }
}

static void of_all_pairs(void **state)
{
    read_records();
    assert_levels(f);
    assert_int_equal(f->sl_rows, f->host_count / 2);
    assert_int_equal(ibshift_fabric_sl(f, 0, IBSHIFT_LID_MAX), 0);
}

static void rows_that_are_alike_are_kept_once(void **state)
{
    char *records;
    size_t size;
    FILE *out = open_memstream(&records, &size);

    for (uint32_t a = 0; a < f->host_count; a++) {
        fprintf(out, "Channel Adapter 0x%016llx, base LID %u, \"h\", port 1\n",
                (unsigned long long)f->ports[f->hosts[a]].guid, ibshift_host_lid(f, a));
        for (uint32_t b = 0; b < f->host_count; b++) {
            fprintf(out, "0x%04X : %d : 4 : 3\n", ibshift_host_lid(f, b), (int)b % 16);
        }
    }
    fclose(out);
    assert_int_equal(read_text(records), 0);
    assert_int_equal(f->sl_rows, 1);
    free(records);
}

static void as_saquery_prints_them(void **state)
{
    char *records;
    size_t size;
    FILE *out = open_memstream(&records, &size);

    for (uint32_t a = 0; a < f->host_count; a++) {
        for (uint32_t b = 0; b < f->host_count; b++) {
            fprintf(out,
                    "PathRecord dump:\n\t\tservice_id..............0x0\n"
                    "\t\tdlid....................%u\n\t\tslid....................%u\n"
                    "\t\tqos_class...............0x0\n\t\tsl......................0x%X\n",
                    ibshift_host_lid(f, b), ibshift_host_lid(f, a), level_of(a, b));
        }
    }
    fclose(out);
    assert_int_equal(read_text(records), 0);
    assert_levels(f);
    free(records);
}

static void a_pair_that_lacks_is_named(void **state)
{
    char *records;
    size_t size;
    FILE *out = open_memstream(&records, &size);

    path_records(out, 3, 5);
    fclose(out);
    assert_int_equal(read_text(records), -ENODATA);
    assert_non_null(strstr(text, "no service level from 'h00003 HCA-1' to 'h00005 HCA-1', LID"));
    free(records);
}

static void what_is_wrong_is_told_with_its_line(void **state)
{
    static const struct {
        const char *records, *message;
    } bad[] = {
        {"Channel Adapter 0x1, base LID 1, \"h\", port 1\n0x0001 : 16 : 4 : 3\n", "records:1: "},
        {"Channel Adapter 0x1, base LID 47000, \"h\", port 1\n", "no host of the fabric has LID"},
        {"Channel Adapter 0x1, \"h\"\n", "wants 'Channel Adapter"},
        {"PathRecord dump:\n dlid....1\n slid....1\n sl......0x10\n",
         "records:4: service level 16"},
        {"PathRecord dump:\n dlid....47000\n slid....1\n sl....0x1\n", "LID 47000 is not in the"},
        {"PathRecord dump:\n sl....0x1\n", "after the LIDs of a pair"},
        {"PathRecord dump:\n dlid....fe80::1\n", "wants a LID"},
        {"0x0001 , 2\n", "wants '0xLID : SL"},
        {"0x0001 : x\n", "wants a service level after the LID"},
        {"# nothing\n", "no service level from"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_true(read_text(bad[i].records) < 0);
        if (strstr(text, bad[i].message) == NULL) {
            fail_msg("%s: '%s'", text, bad[i].message);
        }
    }
    assert_null(f->sl);
}

static void the_compiled_form_has_them(void **state)
{
    struct ibshift_fabric *g = NULL;
    struct ibshift_error err;

    read_records();
    f->has_loop = true;
    write_compiled(path, f, NULL, 0);
    assert_int_equal(ibshift_compiled_read(path, &g, &err), 0);
    assert_levels(g);
    assert_true(g->has_loop);
    assert_false(g->is_adaptive);
    ibshift_fabric_free(g);
    f->sl_row[2] = f->sl_rows;
    write_compiled(path, f, NULL, 0);
    assert_int_equal(ibshift_compiled_read(path, &g, &err), -EINVAL);
    f->sl_row[2] = 0;
    f->sl[f->lft_stride + 1] = 16;
    write_compiled(path, f, NULL, 0);
    assert_int_equal(ibshift_compiled_read(path, &g, &err), -EINVAL);
    assert_non_null(strstr(err.text, "out of range"));
}

static int set_up(void **state)
{
    struct ibshift_error err;

    return ibshift_synth_fabric("kary:4,2", &f, &err);
}

static int tear_down(void **state)
{
    ibshift_fabric_free(f);
    return 0;
}

#define WITH_FABRIC(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FABRIC(of_all_pairs),
        WITH_FABRIC(rows_that_are_alike_are_kept_once),
        WITH_FABRIC(as_saquery_prints_them),
        WITH_FABRIC(a_pair_that_lacks_is_named),
        WITH_FABRIC(what_is_wrong_is_told_with_its_line),
        WITH_FABRIC(the_compiled_form_has_them),
    };
    int fd = mkstemp(path), failed;

    if (fd < 0) {
        return 1;
    }
    close(fd);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    free(text);
    return failed;
}
