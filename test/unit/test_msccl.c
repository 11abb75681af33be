/* XML of MSCCL as plans: programs that are right are proved, all others refused with file and line. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "msccl/msccl.h"
#include "choose/digest.h"
#include "fabric/graph/random.h"
#include "group/wishes.h"
#include "proof/check.h"
#include "unit.h"

enum { ROOM = 1 << 17 };

struct text {
    char at[ROOM];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    text->length +=
        (size_t)vsnprintf(text->at + text->length, ROOM - text->length, format, arguments);
    va_end(arguments);
    assert_true(text->length < ROOM);
}

static void say_step(struct text *text, uint32_t place, const char *type, uint32_t chunk)
{
    say(text,
        "<step s=\"%u\" type=\"%s\" srcbuf=\"i\" srcoff=\"%u\" dstbuf=\"i\" dstoff=\"%u\" "
        "cnt=\"1\" "
        "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n",
        place, type, chunk, chunk);
}

/* As MSCCL's tools write it: one thread block a rank sends to the right and receives from the left, fused, and in place. */
static void write_ring(struct text *text, uint32_t ranks)
{
    text->length = 0;
    say(text,
        "<!-- a ring -->\n<algo name=\"ring\" proto=\"Simple\" nchannels=\"1\" ngpus=\"%u\" "
        "coll=\"allreduce\" inplace=\"1\">\n",
        ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t at = 0;

        say(text,
            "<gpu id=\"%u\" i_chunks=\"%u\" o_chunks=\"%u\" s_chunks=\"0\">\n<tb id=\"0\" "
            "send=\"%u\" recv=\"%u\" "
            "chan=\"0\">\n",
            rank, ranks, ranks, (rank + 1) % ranks, (rank + ranks - 1) % ranks);
        say_step(text, at++, "s", rank);
        for (uint32_t i = 1; i < ranks; i++) {
            say_step(text, at++, i + 1 < ranks ? i == 1 ? "rrcs" : "rrs" : "rrcs",
                     (rank + ranks - i) % ranks);
        }
        for (uint32_t i = 0; i + 1 < ranks; i++) {
            say_step(text, at++, i + 2 < ranks ? "rcs" : "r", (rank + ranks - i) % ranks);
        }
        say(text, "</tb>\n</gpu>\n");
    }
    say(text, "</algo>\n");
}

/* 0, or -EBADMSG where the checker, else what the reader refuses. */
static int read_and_prove(const struct text *text, char *error)
{
    struct ibshift_msccl program;
    struct ibshift_listed listed;
    struct ibshift_check_result result;
    int rc = ibshift_msccl_parse(text->at, text->length, "x.xml", &program, error);

    if (rc != 0) {
        return rc;
    }
    rc = ibshift_msccl_list(&program, &listed, error);
    ibshift_msccl_free(&program);
    if (rc == 0) {
        const struct ibshift_plan plan = {
            .ranks = listed.ranks, .commutative = true, .listed = &listed};
        const struct ibshift_check check = {.window = 32,
                                            .sizes = listed.collective >= IBSHIFT_REDUCE};

        rc = ibshift_check_plan(ibshift_listed_row(listed.collective), &plan, &check, &result);
        snprintf(error, IBSHIFT_TEXT_ERROR, "x.xml:%u: %s",
                 ibshift_listed_line(&listed, result.why), result.why);
        ibshift_listed_free(&listed);
    }
    return rc;
}

static struct text text, other;

static void fused_rings_are_right(void **state)
{
    char error[IBSHIFT_TEXT_ERROR];

    for (uint32_t ranks = 2; ranks <= 17; ranks++) {
        write_ring(&text, ranks);
        if (read_and_prove(&text, error) != 0) {
            fail_msg("%u ranks: %s", ranks, error);
        }
    }
}

/* The first `from` of the ring of four becomes `to`. */
static void refuse(const char *from, const char *to, const char *wanted)
{
    char error[IBSHIFT_TEXT_ERROR] = "";
    const char *at;

    write_ring(&text, 4);
    at = strstr(text.at, from);
    assert_non_null(at);
    other.length = 0;
    say(&other, "%.*s%s%s", (int)(at - text.at), text.at, to, at + strlen(from));
    if (read_and_prove(&other, error) == 0) {
        fail_msg("'%s' for '%s' is taken for right", to, from);
    }
    if (strncmp(error, "x.xml:", 6) != 0 || strstr(error, wanted) == NULL) {
        fail_msg("'%s' for '%s': %s; wanted: %s", to, from, error, wanted);
    }
}

static void what_is_wrong_is_named(void **state)
{
    refuse("<algo", "<also", "x.xml:2: <algo> is missing");
    refuse("<algo", "algo", "a '<' is missing");
    refuse("ngpus=\"4\"", "ngpus=\"0\"", "ngpus=\"0\" must be a whole number from 1");
    refuse("ngpus=\"4\"", "ngpus=\"5\"", "there are 4 <gpu> of 5");
    refuse("ngpus=\"4\"", "ngpus=\"3\"", "from -1 to 2");
    refuse("ngpus=\"4\"", "ngpus=\"99999999999999999999\"", "must be a whole number");
    refuse("ngpus=\"4\"", "ngpus=\"4x\"", "must be a whole number");
    refuse("ngpus=\"4\"", "", "<algo> has no ngpus");
    refuse("ngpus=\"4\"", "ngpus=4", "an attribute is not");
    refuse("ngpus=\"4\"", "ngpus=\"4\n\"", "the value of ngpus does not end");
    refuse("coll=\"allreduce\"", "coll=\"custom\"", "can be allgather");
    refuse("coll=\"allreduce\"", "coll=\"alltoall\"", "alltoall reduces nothing");
    refuse("coll=\"allreduce\"", "coll=\"reducescatter\"", "in place can be");
    refuse("coll=\"allreduce\"", "coll=\"allgather\"", "allgather reduces nothing");
    refuse("id=\"0\"", "id=\"1\"", "from 0 to 0");
    refuse("send=\"1\"", "send=\"0\"", "its own peer");
    refuse("send=\"1\"", "send=\"-1\"", "no peer to send to");
    refuse("send=\"1\"", "send=\"2\"", "no thread block that receives");
    refuse("chan=\"0\"", "chan=\"1\"", "on channel 1");
    refuse("dstoff=\"0\" cnt=\"1\"", "dstoff=\"0\" cnt=\"5\"", "has 4 chunks");
    refuse("srcoff=\"0\"", "srcoff=\"4\"", "has 4 chunks");
    refuse("srcoff=\"0\"", "srcoff=\"4294967295\"", "must be a whole number");
    refuse("i_chunks=\"4\"", "i_chunks=\"999999999\"", "must be a whole number");
    refuse("srcbuf=\"i\"", "srcbuf=\"q\"", "can be i, o or s");
    refuse("type=\"s\"", "type=\"t\"", "can be s, r, rcs");
    refuse("<step s=\"1\"", "<step s=\"2\"", "s=\"2\" must be a whole number from 1 to 1");
    refuse("depid=\"-1\"", "depid=\"0\"", "to wait for");
    refuse("depid=\"-1\" deps=\"-1\"", "depid=\"0\" deps=\"3\"", "step 0 waits for ever");
    refuse("depid=\"-1\" deps=\"-1\"", "depid=\"1\" deps=\"0\"", "to wait for");
    refuse("inplace=\"1\"", "inplace=\"0\"", "writes i");
    refuse("type=\"s\"", "type=\"r\"", "waits for ever");
    refuse("type=\"s\"", "type=\"nop\"", "waits for ever");
    refuse("type=\"rrcs\"", "type=\"rcs\"", "RECV");
    refuse("dstoff=\"3\"", "dstoff=\"2\"", "rank ");
    refuse("</algo>", "", "</algo> is missing");
    refuse("</algo>", "</algo><algo/>", "something follows");
    refuse("</tb>", "</gpu>", "does not belong here");
    refuse("<!-- a ring -->", "<!-- a ring", "a comment does not end");
    refuse("inplace=\"1\"", "inplace=\"1\" minBytes=\"1 M\"", "minBytes must be a whole number");
    refuse("inplace=\"1\"", "inplace=\"1\" maxBytes=\"\"", "maxBytes must be a whole number");
    refuse("<!-- a ring -->", "<!DOCTYPE algo", "this is no MSCCL XML");
}

/* What a file may have beside the program. */
static void what_says_nothing_is_skipped(void **state)
{
    char error[IBSHIFT_TEXT_ERROR];

    text.length = 0;
    write_ring(&other, 3);
    say(&text,
        "\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!DOCTYPE algo>\n<algo xml:lang=\"en\" a-b.c=\"\"%s",
        strstr(other.at, "<algo") + 5);
    assert_int_equal(read_and_prove(&text, error), 0);
}

/* Bytes at random: nothing is read beyond the end, and what is taken for right is the collective still, for the checker says so. */
static void no_file_does_harm(void **state)
{
    static const char bytes[] = "\0\"<>/=- 0123456789ioserc\n";
    uint64_t seed = 1;
    char error[IBSHIFT_TEXT_ERROR];
    int right = 0;

    for (int i = 0; i < 20000; i++) {
        uint32_t places;

        write_ring(&text, 3);
        places = 1 + (uint32_t)(ibshift_random_next(&seed) % 3);
        while (places-- > 0) {
            text.at[ibshift_random_next(&seed) % text.length] =
                bytes[ibshift_random_next(&seed) % sizeof(bytes)];
        }
        if (i % 4 == 0) {
            text.length = ibshift_random_next(&seed) % text.length;
        }
        memcpy(other.at, text.at, text.length); /* valgrind and the sanitizer see its end */
        right += read_and_prove(&text, error) == 0;
    }
    print_message("%d of 20000 are still right\n", right);
    assert_true(right > 0 && right < 10000);
}

static void blocks_of_a_gpu_are_bounded(void **state)
{
    struct ibshift_msccl program;
    char error[IBSHIFT_TEXT_ERROR];

    text.length = 0;
    say(&text, "<algo coll=\"allgather\" ngpus=\"1\" inplace=\"0\">\n"
               "<gpu id=\"0\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\">\n");
    for (uint32_t block = 0; block < 1025; block++) {
        say(&text, "<tb id=\"%u\" send=\"-1\" recv=\"-1\" chan=\"0\"/>\n", block);
    }
    say(&text, "</gpu>\n</algo>\n");
    assert_int_equal(ibshift_msccl_parse(text.at, text.length, "x.xml", &program, error), -EINVAL);
    assert_string_equal(error, "x.xml:1027: more than 1024 thread blocks on gpu 0: too many");
}

/* What ranks compare tells plans with the same steps apart. */
static void digests_cover_all_of_a_plan(void **state)
{
    enum { PARTS = 9 };
    struct ibshift_step steps[2] = {{.count = 1}, {.count = 1}};
    uint64_t sum[PARTS];

    for (int part = 0; part < PARTS; part++) {
        uint32_t first[3] = {0, part == 1, 2}, slots[3] = {0, part == 2, 2};
        uint32_t pieces[2] = {0, part == 3};
        struct ibshift_listed listed = {.collective =
                                            part == 4 ? IBSHIFT_ALLTOALL : IBSHIFT_ALLGATHER,
                                        .ranks = part == 5 ? 1 : 2,
                                        .pieces = part == 6 ? 4 : 2,
                                        .bytes = {part == 8, 0},
                                        .first = first,
                                        .steps = steps,
                                        .tmp_first = slots,
                                        .tmp_piece = pieces};

        steps[1].count = part == 7 ? 2 : 1;
        sum[part] = ibshift_listed_digest(IBSHIFT_DIGEST, &listed);
        for (int before = 0; before < part; before++) {
            assert_true(sum[before] != sum[part]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fused_rings_are_right),
                                       cmocka_unit_test(what_is_wrong_is_named),
                                       cmocka_unit_test(what_says_nothing_is_skipped),
                                       cmocka_unit_test(no_file_does_harm),
                                       cmocka_unit_test(blocks_of_a_gpu_are_bounded),
                                       cmocka_unit_test(digests_cover_all_of_a_plan)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
