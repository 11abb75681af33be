/*
 * Plans as XML of MSCCL, and such XML as plans. Of a rank, a thread block sends to one peer, or receives from one, or does the local
 * steps: what a step needs and drains are then the last steps of others, each behind a step "nop" but the last.
 */
#include "plan/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "msccl/msccl.h"
#include "pool.h"
#include "proof/check.h"

struct item {
    struct ibshift_step step; /* of a copy or a reduction: one run */
    bool is_copy;
    uint32_t round, block, place; /* in its thread block, as printed */
    uint32_t first, count;        /* of those that it waits for */
};

struct writer {
    const struct plan_args *args;
    FILE *out;
    struct pool pool;
    struct item *items;
    uint32_t *waits; /* items */
    uint32_t item_count, wait_count, item_room, wait_room;
    uint32_t blocks; /* thread blocks of this rank */
    uint32_t all_blocks;
    uint32_t *of_peer[2]; /* receives, sends: the block of a peer, and 1 more; 0: none yet */
    uint32_t local;
};

static void *grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
    if (count == *room) {
        *room = *room > 0 ? 2 * *room : 256;
        array = realloc(array, *room * size);
        if (array == NULL) {
            exit(cli_error("plan print", "no memory"));
        }
    }
    return array;
}

static void add_item(struct writer *w, uint32_t round, uint32_t block,
                     const struct ibshift_step *step, bool is_copy)
{
    w->items = grow(w->items, w->item_count, &w->item_room, sizeof(*w->items));
    w->items[w->item_count++] =
        (struct item){.step = *step, .is_copy = is_copy, .round = round, .block = block};
}

/* Runs that lie in one piece on both sides; of an operand that is elsewhere than the result a copy first. */
static void add_local(struct writer *w, uint32_t round, const struct ibshift_step *step)
{
    struct ibshift_step one = *step;
    bool is_copy = step->kind == IBSHIFT_STEP_COPY;
    bool is_apart = !is_copy && (step->with != step->buf || step->beside != step->first);

    w->local = w->local > 0 ? w->local : ++w->blocks;
    if (is_apart) {
        one.src = step->with;
        one.from = step->beside;
        add_item(w, round, w->local - 1, &one, true);
        one = *step;
    }
    for (uint32_t i = 0; i < step->count; i += one.count) {
        one.count = ibshift_step_run(step, i, &one.first, &one.from);
        add_item(w, round, w->local - 1, &one, is_copy);
    }
}

static void add_round(struct writer *w, uint32_t rank, uint32_t round)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t count = w->args->alg->emit(&w->args->plan, rank, round, steps);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t *block;

        if (ibshift_step_is_local(&steps[i])) {
            add_local(w, round, &steps[i]);
            continue;
        }
        block = &w->of_peer[steps[i].kind == IBSHIFT_STEP_SEND][steps[i].peer];
        *block = *block > 0 ? *block : ++w->blocks;
        add_item(w, round, *block - 1, &steps[i], false);
    }
}

/* Of each other thread block the last item that must be over, if its block has not waited for that yet. */
static void find_waits(struct writer *w)
{
    uint32_t *waited = pool_new(&w->pool, (size_t)w->blocks * w->blocks, sizeof(*waited)); /* + 1 */
    uint32_t *last = pool_new(&w->pool, w->blocks, sizeof(*last));                         /* + 1 */
    uint32_t *printed = pool_new(&w->pool, w->blocks, sizeof(*printed));

    for (uint32_t i = 0; i < w->item_count; i++) {
        struct item *item = &w->items[i];

        memset(last, 0, w->blocks * sizeof(*last));
        for (uint32_t k = 0; k < i && item->step.need + item->step.drain > 0; k++) {
            const struct item *other = &w->items[k];
            bool sends = other->step.kind == IBSHIFT_STEP_SEND;

            if (other->round < (sends ? item->step.drain : item->step.need)) {
                last[other->block] = k + 1;
            }
        }
        item->first = w->wait_count;
        for (uint32_t b = 0; b < w->blocks; b++) {
            uint32_t *known = &waited[(size_t)item->block * w->blocks + b];

            if (b != item->block && last[b] > *known) {
                w->waits = grow(w->waits, w->wait_count, &w->wait_room, sizeof(*w->waits));
                w->waits[w->wait_count++] = last[b] - 1;
                *known = last[b];
            }
        }
        item->count = w->wait_count - item->first;
        printed[item->block] += item->count > 1 ? item->count - 1 : 0;
        item->place = printed[item->block]++;
    }
}

static void print_item(struct writer *w, const struct item *item)
{
    static const char letters[IBSHIFT_BUFFERS] = {'i', 'o', 's'};
    const struct ibshift_step *step = &item->step;
    bool is_local = ibshift_step_is_local(step);
    const char *type = step->kind == IBSHIFT_STEP_SEND   ? "s"
                       : step->kind == IBSHIFT_STEP_RECV ? "r"
                       : item->is_copy                   ? "cpy"
                                                         : "re";
    uint32_t place = item->place - (item->count > 1 ? item->count - 1 : 0);

    for (uint32_t i = 0; i + 1 < item->count; i++) {
        const struct item *other = &w->items[w->waits[item->first + i]];

        fprintf(w->out,
                "      <step s=\"%u\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" "
                "dstoff=\"-1\" cnt=\"0\" depid=\"%u\" deps=\"%u\" hasdep=\"0\"/>\n",
                place++, other->block, other->place);
    }
    fprintf(w->out,
            "      <step s=\"%u\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%u\" dstbuf=\"%c\" "
            "dstoff=\"%u\" cnt=\"%u\"",
            item->place, type, letters[is_local ? step->src : step->buf],
            is_local ? step->from : step->first, letters[step->buf], step->first, step->count);
    if (item->count > 0) {
        const struct item *other = &w->items[w->waits[item->first + item->count - 1]];

        fprintf(w->out, " depid=\"%u\" deps=\"%u\"", other->block, other->place);
    } else {
        fputs(" depid=\"-1\" deps=\"-1\"", w->out);
    }
    fputs(" hasdep=\"1\"/>\n", w->out); /* whether somebody waits or not: a flag more */
}

/* For the reader. */
static bool is_too_large(const struct writer *w)
{
    return w->args->plan.ranks > IBSHIFT_MSCCL_RANKS_MOST ||
           w->all_blocks > IBSHIFT_MSCCL_BLOCKS_MOST || ftell(w->out) > IBSHIFT_MSCCL_FILE_MOST;
}

static void print_rank(struct writer *w, uint32_t rank)
{
    const struct plan_args *args = w->args;
    int32_t *peers[2];

    w->item_count = w->wait_count = w->blocks = w->local = 0;
    for (int way = 0; way < 2; way++) {
        memset(w->of_peer[way], 0, args->plan.ranks * sizeof(**w->of_peer));
    }
    for (uint32_t round = 0; round < args->alg->rounds(&args->plan, rank); round++) {
        add_round(w, rank, round);
    }
    w->all_blocks += w->blocks;
    if (is_too_large(w)) {
        return;
    }
    find_waits(w);
    for (int way = 0; way < 2; way++) {
        peers[way] = pool_new(&w->pool, w->blocks, sizeof(*peers[way]));
        for (uint32_t peer = 0; peer < args->plan.ranks; peer++) {
            if (w->of_peer[way][peer] > 0) {
                peers[way][w->of_peer[way][peer] - 1] = (int32_t)peer + 1;
            }
        }
    }
    fprintf(w->out, "  <gpu id=\"%u\"", rank);
    for (int buf = 0; buf < IBSHIFT_BUFFERS; buf++) {
        fprintf(w->out, " %c_chunks=\"%u\"", "ios"[buf],
                ibshift_alg_blocks(args->alg, &args->plan, rank, (enum ibshift_buffer)buf));
    }
    fputs(">\n", w->out);
    for (uint32_t b = 0; b < w->blocks; b++) {
        fprintf(w->out, "    <tb id=\"%u\" send=\"%d\" recv=\"%d\" chan=\"0\">\n", b,
                peers[1][b] - 1, peers[0][b] - 1);
        for (uint32_t i = 0; i < w->item_count; i++) {
            if (w->items[i].block == b) {
                print_item(w, &w->items[i]);
            }
        }
        fputs("    </tb>\n", w->out);
    }
    fputs("  </gpu>\n", w->out);
}

static void write_program(struct writer *w)
{
    const struct plan_args *args = w->args;
    const char *name = ibshift_collective_name(args->alg->collective);

    fprintf(w->out,
            "<algo name=\"%s\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"%u\" ngpus=\"%u\" "
            "coll=\"%s\" inplace=\"0\">\n",
            args->alg->name,
            args->alg->collective == IBSHIFT_ALLREDUCE ? ibshift_alg_pieces(args->alg, &args->plan)
                                                       : args->plan.ranks,
            args->plan.ranks,
            args->alg->collective == IBSHIFT_REDUCE_SCATTER ? "reducescatter" : name);
    for (int way = 0; way < 2; way++) {
        w->of_peer[way] = pool_new(&w->pool, args->plan.ranks, sizeof(**w->of_peer));
    }
    for (uint32_t rank = 0; rank < args->plan.ranks && !is_too_large(w); rank++) {
        print_rank(w, rank);
    }
    fputs("</algo>\n", w->out);
    free(w->items);
    free(w->waits);
    pool_free(&w->pool);
}

/* Nobody writes what nobody reads. */
static bool is_read(const char *text, size_t length, const char *name, char *error)
{
    struct ibshift_msccl program;
    struct ibshift_listed listed;
    int rc = ibshift_msccl_parse(text, length, name, &program, error);

    if (rc == 0) {
        rc = ibshift_msccl_list(&program, &listed, error);
        ibshift_msccl_free(&program);
    }
    if (rc == 0) {
        ibshift_listed_free(&listed);
    }
    return rc == 0;
}

int plan_msccl(const struct plan_args *args, FILE *out)
{
    char error[IBSHIFT_TEXT_ERROR] = "no memory", *text = NULL;
    size_t length = 0;
    struct writer w = {.args = args, .out = open_memstream(&text, &length)};
    bool is_large, is_written;

    if (w.out == NULL) {
        return cli_error(args->command, "%s", error);
    }
    write_program(&w);
    is_large = is_too_large(&w);
    if (is_large) {
        snprintf(error, sizeof(error), "more than %d ranks, %d thread blocks or %d MiB",
                 IBSHIFT_MSCCL_RANKS_MOST, IBSHIFT_MSCCL_BLOCKS_MOST,
                 IBSHIFT_MSCCL_FILE_MOST >> 20);
    }
    is_written = fclose(w.out) == 0 && !is_large && is_read(text, length, args->alg->name, error);
    if (is_written) {
        fwrite(text, 1, length, out);
    }
    free(text);
    return is_written ? CLI_OK : cli_error(args->command, "--msccl: %s", error);
}

int plan_file_open(struct plan_args *args)
{
    char error[IBSHIFT_TEXT_ERROR];
    struct ibshift_listed *listed;

    if (args->file == NULL) {
        return CLI_OK;
    }
    if (args->collective >= 0 || args->has_ranks) {
        return cli_error(args->command, "--file says which collective, algorithm and ranks");
    }
    args->file = strcmp(args->file, "-") == 0 ? "/dev/stdin" : args->file;
    listed = calloc(1, sizeof(*listed));
    if (listed == NULL) {
        return cli_error(args->command, "no memory");
    }
    args->listed = listed;
    if (ibshift_msccl_read(args->file, listed, error) != 0) {
        return cli_error(args->command, "%s", error);
    }
    if (args->fabric != NULL && listed->ranks != args->plan.ranks) {
        return cli_error(args->command, "%s: a plan of %u ranks, and %u ranks on the fabric",
                         args->file, listed->ranks, args->plan.ranks);
    }
    args->collective = (int)listed->collective;
    args->alg = ibshift_listed_row(listed->collective);
    args->plan.ranks = args->ranks_last = listed->ranks;
    args->plan.listed = listed;
    return CLI_OK;
}

void plan_file_close(struct plan_args *args)
{
    if (args->listed != NULL) {
        ibshift_listed_free(args->listed);
        free(args->listed);
    }
}
