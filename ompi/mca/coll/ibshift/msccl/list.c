/* A program of MSCCL as a plan: its steps in an order in which they can run, and what each waits for (msccl/msccl.h). */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "msccl/msccl.h"
#include "plan/alg_emit.h"

enum { CELLS_MOST = 1 << 24, SLOTS_MOST = 1 << 22, NO_PIECE = -1 };

/* A block of a buffer: the ends of the last steps that wrote it, read it and sent it, as need and drain count them. */
struct cell {
    uint32_t written, read, sent;
    int32_t piece; /* of a slot of TMP: whose size it has */
};

/* Of a thread block while the program runs. */
struct run {
    uint32_t at, sent, taken; /* its next step; messages */
    int32_t waiter, next; /* blocks that wait for one of its steps, and the next of such a list */
    bool is_queued;
};

/* What a block has sent, in the order of its messages. */
struct message {
    struct emit_range from;
    uint32_t tag;
};

struct lister {
    const struct ibshift_msccl *program;
    struct ibshift_listed *listed;
    uint32_t blocks[IBSHIFT_BUFFERS]; /* of a rank; TMP: those of s */
    struct cell *cells;
    struct run *runs;
    struct message *messages; /* of a thread block from its first step on */
    uint32_t *queue, head, queued;
    uint32_t *tags;  /* of a pair */
    uint32_t *count; /* by rank: steps so far */
    uint32_t *slots; /* and slots of TMP behind the others */
    char *error;
    int rc;
};

__attribute__((format(printf, 3, 4))) static void fail(struct lister *l, uint32_t line,
                                                       const char *format, ...)
{
    struct ibshift_text text = {.name = l->program->name, .line = (int)line, .error = l->error};
    char what[160];
    va_list arguments;

    if (l->rc == 0) {
        va_start(arguments, format);
        vsnprintf(what, sizeof(what), format, arguments);
        va_end(arguments);
        ibshift_text_fail(&text, "%s", what);
        l->rc = -EINVAL;
    }
}

static struct cell *cells_of(const struct lister *l, uint32_t rank, struct emit_range range)
{
    size_t each = (size_t)l->blocks[0] + l->blocks[1] + l->blocks[2];
    size_t offset = range.buf == IBSHIFT_SEND   ? 0
                    : range.buf == IBSHIFT_RECV ? l->blocks[IBSHIFT_SEND]
                                                : each - l->blocks[IBSHIFT_TMP];

    return &l->cells[rank * each + offset + range.first];
}

/* Behind s: nobody else touches it. */
static bool is_spare(const struct lister *l, struct emit_range range)
{
    return range.buf == IBSHIFT_TMP && range.first >= l->blocks[IBSHIFT_TMP];
}

/* In place, i is where the result will be. */
static struct emit_range place(struct lister *l, uint32_t rank,
                               const struct ibshift_msccl_step *step, uint8_t buf, uint32_t first)
{
    const struct ibshift_msccl *program = l->program;
    struct emit_range range = emit_blocks((enum ibshift_buffer)buf, first, step->count);

    if (program->in_place && buf == IBSHIFT_SEND) {
        range.buf = IBSHIFT_RECV;
        range.first += program->collective == IBSHIFT_ALLGATHER ? rank : 0;
    }
    if (range.count > l->blocks[range.buf] || range.first > l->blocks[range.buf] - range.count) {
        fail(l, step->line, "chunk %u of %c: %s among %u ranks has %u there", first, "ios"[buf],
             ibshift_collective_name(program->collective), program -> ranks,
             l -> blocks[range.buf]);
    }
    return range;
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The rank's next step. */
static struct ibshift_step *add(struct lister *l, uint32_t rank, uint32_t line,
                                const struct ibshift_step *step)
{
    uint32_t at = l->listed->first[rank] + l->count[rank]++;

    l->listed->steps[at] = *step;
    l->listed->line[at] = line;
    return &l->listed->steps[at];
}

/* The step just added waits for what wrote what it reads, */
static void reads(struct lister *l, uint32_t rank, struct emit_range range,
                  struct ibshift_step *step)
{
    for (uint32_t i = 0; i < range.count && !is_spare(l, range); i++) {
        struct cell *cell = &cells_of(l, rank, range)[i];

        step->need = later(step->need, cell->written);
        *(step->kind == IBSHIFT_STEP_SEND ? &cell->sent : &cell->read) = l->count[rank];
    }
}

/* and for what used what it overwrites. */
static void writes(struct lister *l, uint32_t rank, struct emit_range range,
                   struct ibshift_step *step)
{
    for (uint32_t i = 0; i < range.count && !is_spare(l, range); i++) {
        struct cell *cell = &cells_of(l, rank, range)[i];

        step->need = later(step->need, cell->written);
        step->need = later(step->need, cell->read == l->count[rank] ? 0 : cell->read);
        step->drain = later(step->drain, cell->sent);
        cell->written = l->count[rank];
    }
}

static int32_t piece_at(const struct lister *l, uint32_t rank, struct emit_range range, uint32_t i)
{
    const struct ibshift_listed *listed = l->listed;

    return range.buf != IBSHIFT_TMP ? (int32_t)(range.first + i)
           : is_spare(l, range)
               ? (int32_t)listed->tmp_piece[listed->tmp_first[rank] + range.first + i]
               : cells_of(l, rank, range)[i].piece;
}

/* A slot has the size of what comes there first. */
static void take_pieces(struct lister *l, uint32_t rank, struct emit_range to, uint32_t from_rank,
                        struct emit_range from)
{
    for (uint32_t i = 0; i < to.count && to.buf == IBSHIFT_TMP; i++) {
        struct cell *cell = &cells_of(l, rank, to)[i];

        cell->piece = cell->piece == NO_PIECE ? piece_at(l, from_rank, from, i) : cell->piece;
    }
}

/* New slots for what comes to be reduced. */
static struct emit_range spare(struct lister *l, uint32_t rank, struct emit_range of)
{
    struct emit_range range =
        emit_blocks(IBSHIFT_TMP, l->blocks[IBSHIFT_TMP] + l->slots[rank], of.count);
    uint32_t *piece = &l->listed->tmp_piece[l->listed->tmp_first[rank] + range.first];

    for (uint32_t i = 0; i < of.count; i++) {
        int32_t known = piece_at(l, rank, of, i);

        piece[i] = known == NO_PIECE ? 0 : (uint32_t)known;
    }
    l->slots[rank] += of.count;
    return range;
}

static void add_send(struct lister *l, uint32_t index, uint32_t line, struct emit_range from,
                     uint32_t need)
{
    const struct ibshift_msccl_block *block = &l->program->blocks[index];
    uint32_t *tag = &l->tags[(size_t)block->rank * l->program->ranks + (uint32_t)block->to];
    struct ibshift_step made;

    l->messages[block->first + l->runs[index].sent++] = (struct message){from, *tag};
    emit_send(&made, (uint32_t)block->to, from, (*tag)++, need);
    reads(l, block->rank, from, add(l, block->rank, line, &made));
}

/* What comes goes where the step says, is added to what is there, or to a copy that is sent. */
static void add_recv(struct lister *l, uint32_t index, const struct ibshift_msccl_step *step)
{
    const struct ibshift_msccl_block *block = &l->program->blocks[index];
    uint32_t rank = block->rank, sender = (uint32_t)block->sender;
    const struct message *message =
        &l->messages[l->program->blocks[sender].first + l->runs[index].taken++];
    bool reduces = ibshift_msccl_reduces(step);
    bool keeps = step->type != IBSHIFT_MSCCL_RECV_REDUCE_SEND;
    struct emit_range to = place(l, rank, step, step->dst_buf, step->dst), at = to;
    struct ibshift_step made, *added;

    if (message->from.count != step->count) {
        fail(l, step->line, "cnt=\"%u\", but gpu %d sends %u chunks", step->count, block->from,
             message->from.count);
    }
    if (l->rc != 0) {
        return;
    }
    take_pieces(l, rank, to, (uint32_t)block->from, message->from);
    at = reduces ? spare(l, rank, to) : to;
    emit_recv(&made, (uint32_t)block->from, at, message->tag, 0, 0);
    writes(l, rank, at, add(l, rank, step->line, &made));
    if (reduces) {
        struct emit_range sum = keeps ? to : at;

        emit_with(emit_reduce(&made, IBSHIFT_STEP_REDUCE, sum, at.buf, at.first, l->count[rank], 0),
                  to.buf, to.first);
        added = add(l, rank, step->line, &made);
        reads(l, rank, to, added);
        writes(l, rank, sum, added);
        at = sum;
    }
    if (step->type != IBSHIFT_MSCCL_RECV && step->type != IBSHIFT_MSCCL_RECV_REDUCE_COPY) {
        add_send(l, index, step->line, at, l->count[rank]);
    }
}

static void add_local(struct lister *l, uint32_t rank, const struct ibshift_msccl_step *step)
{
    struct emit_range from = place(l, rank, step, step->src_buf, step->src);
    struct emit_range to = place(l, rank, step, step->dst_buf, step->dst);
    struct ibshift_step made, *added;

    if (l->rc != 0) {
        return;
    }
    take_pieces(l, rank, to, rank, from);
    if (step->type == IBSHIFT_MSCCL_COPY) {
        emit_copy(&made, to, from.buf, from.first, 0, 0);
    } else {
        emit_reduce(&made, IBSHIFT_STEP_REDUCE, to, from.buf, from.first, 0, 0);
    }
    added = add(l, rank, step->line, &made);
    reads(l, rank, from, added);
    writes(l, rank, to, added);
}

/* In place, a rank's own operand is where the result will be before anything else. */
static void add_own(struct lister *l, uint32_t rank)
{
    bool is_gather = l->program->collective == IBSHIFT_ALLGATHER;
    struct emit_range to = emit_blocks(IBSHIFT_RECV, is_gather ? rank : 0, l->blocks[IBSHIFT_SEND]);
    struct ibshift_step made;

    emit_copy(&made, to, IBSHIFT_SEND, 0, 0, 0);
    writes(l, rank, to, add(l, rank, 1, &made));
}

static void enqueue(struct lister *l, uint32_t index)
{
    if (!l->runs[index].is_queued) {
        l->runs[index].is_queued = true;
        l->queue[(l->head + l->queued++) % l->program->block_count] = index;
    }
}

/* Its next step, if it can run; else who will wake it knows that. */
static void advance(struct lister *l, uint32_t index)
{
    const struct ibshift_msccl_block *block = &l->program->blocks[index];
    struct run *run = &l->runs[index];
    const struct ibshift_msccl_step *step = &l->program->steps[block->first + run->at];
    uint32_t sent = run->sent;

    if (run->at == block->count) {
        return;
    }
    if (step->dep_block >= 0) {
        struct run *other = &l->runs[l->program->first[block->rank] + (uint32_t)step->dep_block];

        if (other->at <= (uint32_t)step->dep_step) {
            run->next = other->waiter;
            other->waiter = (int32_t)index;
            return;
        }
    }
    if (ibshift_msccl_receives(step) &&
        (block->sender < 0 || l->runs[block->sender].sent == run->taken)) {
        return;
    }
    if (ibshift_msccl_receives(step)) {
        add_recv(l, index, step);
    } else if (step->type == IBSHIFT_MSCCL_SEND) {
        struct emit_range from = place(l, block->rank, step, step->src_buf, step->src);

        if (l->rc == 0) {
            add_send(l, index, step->line, from, 0);
        }
    } else if (step->type != IBSHIFT_MSCCL_NOP) {
        add_local(l, block->rank, step);
    }
    run->at++;
    enqueue(l, index);
    if (run->sent > sent) {
        enqueue(l, (uint32_t)block->receiver);
    }
    while (run->waiter >= 0) {
        uint32_t woken = (uint32_t)run->waiter;

        run->waiter = l->runs[woken].next;
        enqueue(l, woken);
    }
}

static void run_all(struct lister *l)
{
    const struct ibshift_msccl *program = l->program;

    for (uint32_t rank = 0; rank < program->ranks && program->in_place; rank++) {
        add_own(l, rank);
    }
    for (uint32_t i = 0; i < program->block_count; i++) {
        enqueue(l, i);
    }
    while (l->queued > 0 && l->rc == 0) {
        uint32_t index = l->queue[l->head];

        l->head = (l->head + 1) % program->block_count;
        l->queued--;
        l->runs[index].is_queued = false;
        advance(l, index);
    }
    for (uint32_t i = 0; i < program->block_count; i++) {
        const struct ibshift_msccl_block *block = &program->blocks[i];
        const struct run *run = &l->runs[i];

        if (run->at < block->count) {
            fail(l, program->steps[block->first + run->at].line,
                 "gpu %u, thread block %u: step %u waits for ever", block->rank,
                 i - program->first[block->rank], run->at);
        } else if (block->sender >= 0 && l->runs[block->sender].sent > run->taken) {
            fail(l, block->line, "gpu %u takes %u of %u messages from gpu %d over channel %u",
                 block->rank, run->taken, l->runs[block->sender].sent, block->from, block->channel);
        }
    }
}

/* Where each rank's steps and slots begin. */
static void lay_out(struct lister *l)
{
    static const uint8_t made[IBSHIFT_MSCCL_TYPES] = {0, 1, 1, 2, 2, 3, 3, 1, 1};
    const struct ibshift_msccl *program = l->program;
    struct ibshift_listed *listed = l->listed;

    for (uint32_t rank = 0; rank < program->ranks && l->rc == 0; rank++) {
        uint64_t slots = (uint64_t)listed->tmp_first[rank] + l->blocks[IBSHIFT_TMP];
        uint32_t steps = listed->first[rank] + program->in_place;

        for (uint32_t i = program->first[rank]; i < program->first[rank + 1]; i++) {
            const struct ibshift_msccl_block *block = &program->blocks[i];

            for (uint32_t at = block->first; at < block->first + block->count; at++) {
                const struct ibshift_msccl_step *step = &program->steps[at];

                steps += made[step->type];
                slots += ibshift_msccl_reduces(step) ? step->count : 0;
            }
        }
        if (slots > SLOTS_MOST) {
            fail(l, 1, "more than %d chunks of scratch", SLOTS_MOST);
        }
        listed->first[rank + 1] = steps;
        listed->tmp_first[rank + 1] = (uint32_t)slots;
    }
}

/* Blocks of each buffer: chunks are blocks, or pieces of a vector. */
static void find_blocks(struct lister *l)
{
    const struct ibshift_msccl *program = l->program;
    uint32_t ranks = program->ranks, chunks = 1, scratch = 0;

    for (uint32_t rank = 0; rank < ranks; rank++) {
        for (int buf = 0; buf < IBSHIFT_TMP; buf++) {
            chunks = later(chunks, program->chunks[rank][buf]);
        }
        scratch = later(scratch, program->chunks[rank][IBSHIFT_TMP]);
    }
    if (program->in_place && program->collective != IBSHIFT_ALLREDUCE &&
        program->collective != IBSHIFT_ALLGATHER) {
        fail(l, 1, "in place can be allreduce and allgather");
    }
    l->listed->pieces = program->collective == IBSHIFT_ALLREDUCE ? chunks : 1;
    chunks = program->collective == IBSHIFT_ALLREDUCE ? chunks : ranks;
    l->blocks[IBSHIFT_SEND] = program->collective == IBSHIFT_ALLGATHER ? 1 : chunks;
    l->blocks[IBSHIFT_RECV] = program->collective == IBSHIFT_REDUCE_SCATTER ? 1 : chunks;
    l->blocks[IBSHIFT_TMP] = scratch;
    if ((uint64_t)ranks * (l->blocks[0] + l->blocks[1] + l->blocks[2]) > CELLS_MOST) {
        fail(l, 1, "%u ranks with %u chunks each are too many", ranks, chunks + scratch);
    }
}

static void *room(struct lister *l, size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);

    if (memory == NULL && l->rc == 0) {
        snprintf(l->error, IBSHIFT_TEXT_ERROR, "%.100s: no memory", l->program->name);
        l->rc = -ENOMEM;
    }
    return memory;
}

static void make_rooms(struct lister *l)
{
    const struct ibshift_msccl *program = l->program;
    uint32_t ranks = program->ranks;
    size_t each = (size_t)l->blocks[0] + l->blocks[1] + l->blocks[2];

    l->cells = room(l, ranks * each, sizeof(*l->cells));
    l->runs = room(l, program->block_count, sizeof(*l->runs));
    l->messages = room(l, program->step_count, sizeof(*l->messages));
    l->queue = room(l, program->block_count, sizeof(*l->queue));
    l->tags = room(l, (size_t)ranks * ranks, sizeof(*l->tags));
    l->count = room(l, ranks, sizeof(*l->count));
    l->slots = room(l, ranks, sizeof(*l->slots));
    for (size_t i = 0; i < ranks * each && l->rc == 0; i++) {
        l->cells[i].piece = NO_PIECE;
    }
    for (uint32_t i = 0; i < program->block_count && l->rc == 0; i++) {
        l->runs[i] = (struct run){.waiter = IBSHIFT_MSCCL_NONE, .next = IBSHIFT_MSCCL_NONE};
    }
}

static void keep_pieces(struct lister *l)
{
    const struct ibshift_msccl *program = l->program;

    for (uint32_t rank = 0; rank < program->ranks; rank++) {
        for (uint32_t i = 0; i < l->blocks[IBSHIFT_TMP]; i++) {
            int32_t piece = cells_of(l, rank, emit_blocks(IBSHIFT_TMP, i, 1))->piece;

            l->listed->tmp_piece[l->listed->tmp_first[rank] + i] =
                piece == NO_PIECE ? 0 : (uint32_t)piece;
        }
    }
}

int ibshift_msccl_list(const struct ibshift_msccl *program, struct ibshift_listed *listed,
                       char *error)
{
    struct lister l = {.program = program, .listed = listed, .error = error};

    *listed = (struct ibshift_listed){program->collective, program->ranks,
                                      .bytes = {program->bytes[0], program->bytes[1]}};
    find_blocks(&l);
    listed->first = room(&l, program->ranks, sizeof(*listed->first));
    listed->tmp_first = room(&l, program->ranks, sizeof(*listed->tmp_first));
    if (l.rc == 0) {
        lay_out(&l);
    }
    if (l.rc == 0) {
        listed->steps = room(&l, listed->first[program->ranks], sizeof(*listed->steps));
        listed->line = room(&l, listed->first[program->ranks], sizeof(*listed->line));
        listed->tmp_piece = room(&l, listed->tmp_first[program->ranks], sizeof(*listed->tmp_piece));
        make_rooms(&l);
    }
    if (l.rc == 0) {
        run_all(&l);
        keep_pieces(&l);
    }
    free(l.cells);
    free(l.runs);
    free(l.messages);
    free(l.queue);
    free(l.tags);
    free(l.count);
    free(l.slots);
    if (l.rc != 0) {
        ibshift_listed_free(listed);
    }
    return l.rc;
}

int ibshift_msccl_read(const char *path, struct ibshift_listed *listed, char *error)
{
    struct ibshift_msccl program;
    size_t length;
    char *text;
    int rc = ibshift_text_read(path, IBSHIFT_MSCCL_FILE_MOST, NULL, &text, &length, error);

    if (rc != 0) {
        return rc;
    }
    rc = ibshift_msccl_parse(text, length, path, &program, error);
    if (rc == 0) {
        rc = ibshift_msccl_list(&program, listed, error);
        ibshift_msccl_free(&program);
    }
    free(text);
    return rc;
}
