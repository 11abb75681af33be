/* Reads the XML of MSCCL: as much of the language as its files have, elements and attributes. */
#include "msccl/msccl.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPU_BLOCKS = 1024, STEPS_MOST = 1 << 20, CHUNKS_MOST = 1 << 16, ATTRIBUTES = 24 };

struct piece {
    const char *at;
    size_t length;
};

struct tag {
    struct piece name;
    bool is_end, is_empty; /* </name>, <name/> */
    uint32_t count;
    struct piece key[ATTRIBUTES], value[ATTRIBUTES];
};

struct reader {
    struct ibshift_text text;
    struct ibshift_msccl *program;
    uint32_t block_room, step_room;
};

/* As much of it as a message has room for. */
static int brief(struct piece piece)
{
    return (int)(piece.length < 40 ? piece.length : 40);
}

static bool is_word(struct piece piece, const char *word)
{
    return piece.length == strlen(word) && memcmp(piece.at, word, piece.length) == 0;
}

/* Up to the text; the rest of the file, with an error, where it does not come. */
static void skip_to(struct ibshift_text *text, const char *end, const char *what)
{
    size_t length = strlen(end);

    while ((size_t)(text->end - text->at) >= length && memcmp(text->at, end, length) != 0) {
        text->line += *text->at++ == '\n';
    }
    if ((size_t)(text->end - text->at) < length) {
        ibshift_text_fail(text, "%s does not end", what);
        return;
    }
    text->at += length;
}

static struct piece read_name(struct ibshift_text *text)
{
    struct piece name = {text->at, 0};

    while (text->at < text->end &&
           (isalnum((unsigned char)*text->at) || memchr("_-:.", *text->at, 4) != NULL)) {
        text->at++;
    }
    name.length = (size_t)(text->at - name.at);
    if (name.length == 0) {
        ibshift_text_fail(text, "a name is missing here");
    }
    return name;
}

static void read_attribute(struct ibshift_text *text, struct tag *tag)
{
    struct piece key = read_name(text), value;
    char quote;

    if (!ibshift_text_skip(text, false, '\0') || *text->at != '=' || ++text->at == text->end ||
        !ibshift_text_skip(text, false, '\0') || (*text->at != '"' && *text->at != '\'')) {
        ibshift_text_fail(text, "an attribute is not NAME=\"VALUE\"");
        return;
    }
    quote = *text->at++;
    value.at = text->at;
    while (text->at < text->end && *text->at != quote && *text->at != '<' && *text->at != '\n') {
        text->at++;
    }
    value.length = (size_t)(text->at - value.at);
    if (text->at == text->end || *text->at++ != quote) {
        ibshift_text_fail(text, "the value of %.*s does not end", (int)key.length, key.at);
    } else if (tag->count == ATTRIBUTES) {
        ibshift_text_fail(text, "more than %d attributes", ATTRIBUTES);
    } else {
        tag->key[tag->count] = key;
        tag->value[tag->count++] = value;
    }
}

/* The next one; false: the file ends. */
static bool read_tag(struct ibshift_text *text, struct tag *tag)
{
    *tag = (struct tag){.count = 0};
    while (ibshift_text_skip(text, false, '\0')) {
        size_t left = (size_t)(text->end - text->at);
        bool is_comment = left >= 4 && memcmp(text->at, "<!--", 4) == 0;
        bool is_type = left >= 2 && memcmp(text->at, "<!", 2) == 0; /* or a comment */

        if (is_type || (left >= 2 && memcmp(text->at, "<?", 2) == 0)) {
            skip_to(text,
                    is_comment ? "-->"
                    : is_type  ? ">"
                               : "?>",
                    is_comment ? "a comment" : "a declaration");
            continue;
        }
        if (*text->at++ != '<') {
            ibshift_text_fail(text, "a '<' is missing here: this is no MSCCL XML");
            return false;
        }
        tag->is_end = text->at < text->end && *text->at == '/';
        text->at += tag->is_end;
        tag->name = read_name(text);
        while (ibshift_text_skip(text, false, '\0') && *text->at != '>' && *text->at != '/') {
            read_attribute(text, tag);
        }
        tag->is_empty = text->at < text->end && *text->at == '/';
        text->at += tag->is_empty;
        if (text->at == text->end || *text->at++ != '>') {
            ibshift_text_fail(text, "a tag does not end");
        }
        return text->rc == 0;
    }
    return false;
}

static struct piece value_of(struct ibshift_text *text, const struct tag *tag, const char *key)
{
    for (uint32_t i = 0; i < tag->count; i++) {
        if (is_word(tag->key[i], key)) {
            return tag->value[i];
        }
    }
    ibshift_text_fail(text, "<%.*s> has no %s", (int)tag->name.length, tag->name.at, key);
    return (struct piece){"", 0};
}

/* -1 alone is below zero. */
static int32_t number_of(struct ibshift_text *text, const struct tag *tag, const char *key,
                         int32_t least, int32_t most)
{
    struct piece value = value_of(text, tag, key);
    int32_t number = is_word(value, "-1") ? -1 : 0;

    for (size_t i = 0; i < value.length && number >= 0; i++) {
        number = isdigit((unsigned char)value.at[i]) && number <= (1 << 27)
                     ? number * 10 + (value.at[i] - '0')
                     : -2;
    }
    if (text->rc == 0 && (value.length == 0 || number < least || number > most)) {
        ibshift_text_fail(text, "%s=\"%.*s\" must be a whole number from %d to %d", key,
                          brief(value), value.at, least, most);
    }
    return number;
}

static enum ibshift_collective collective_of(struct ibshift_text *text, const struct tag *tag)
{
    static const struct {
        const char *name;
        enum ibshift_collective collective;
    } names[] = {{"allgather", IBSHIFT_ALLGATHER},
                 {"allreduce", IBSHIFT_ALLREDUCE},
                 {"alltoall", IBSHIFT_ALLTOALL},
                 {"reducescatter", IBSHIFT_REDUCE_SCATTER},
                 {"reduce_scatter", IBSHIFT_REDUCE_SCATTER}};
    struct piece value = value_of(text, tag, "coll");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (is_word(value, names[i].name)) {
            return names[i].collective;
        }
    }
    ibshift_text_fail(text,
                      "coll=\"%.*s\": can be allgather, allreduce, alltoall or reduce_scatter",
                      brief(value), value.at);
    return IBSHIFT_BARRIER;
}

static void *make_room(struct reader *r, void *array, uint32_t count, uint32_t *room, size_t size)
{
    void *more = array;

    if (count == *room) {
        *room = *room > 0 ? 2 * *room : 64;
        more = realloc(array, *room * size);
        if (more == NULL) {
            *room = count;
            ibshift_text_fail(&r->text, "no memory");
            r->text.rc = -ENOMEM;
            return array;
        }
    }
    return more;
}

static uint8_t buffer_of(struct ibshift_text *text, const struct tag *tag, const char *key)
{
    struct piece value = value_of(text, tag, key);

    if (value.length != 1 || strchr("ios", value.at[0]) == NULL) {
        ibshift_text_fail(text, "%s=\"%.*s\": can be i, o or s", key, brief(value), value.at);
        return IBSHIFT_TMP;
    }
    return value.at[0] == 'i' ? IBSHIFT_SEND : value.at[0] == 'o' ? IBSHIFT_RECV : IBSHIFT_TMP;
}

/* The chunks lie within the buffer. */
static uint32_t chunks_of(struct reader *r, const struct tag *tag, const char *key, uint8_t buffer,
                          uint32_t count)
{
    const struct ibshift_msccl *program = r->program;
    uint32_t rank = program->blocks[program->block_count - 1].rank;
    uint32_t have = program->chunks[rank][buffer];
    uint32_t first = (uint32_t)number_of(&r->text, tag, key, 0, CHUNKS_MOST);

    if (r->text.rc == 0 && (count > have || first > have - count)) {
        ibshift_text_fail(&r->text, "%s=\"%u\" and cnt=\"%u\": gpu %u has %u chunks there", key,
                          first, count, rank, have);
    }
    return first;
}

static uint8_t type_of(struct ibshift_text *text, const struct tag *tag)
{
    static const char *const names[IBSHIFT_MSCCL_TYPES] = {"nop", "s",    "r",   "rcs", "rrc",
                                                           "rrs", "rrcs", "cpy", "re"};
    struct piece value = value_of(text, tag, "type");

    for (uint8_t i = 0; i < IBSHIFT_MSCCL_TYPES; i++) {
        if (is_word(value, names[i])) {
            return i;
        }
    }
    ibshift_text_fail(text, "type=\"%.*s\": can be s, r, rcs, rrc, rrs, rrcs, cpy, re or nop",
                      brief(value), value.at);
    return IBSHIFT_MSCCL_NOP;
}

static void read_step(struct reader *r, const struct tag *tag)
{
    struct ibshift_msccl *program = r->program;
    struct ibshift_msccl_block *block = &program->blocks[program->block_count - 1];
    struct ibshift_msccl_step step = {.type = type_of(&r->text, tag),
                                      .line = (uint32_t)r->text.line};
    bool has_src = step.type == IBSHIFT_MSCCL_SEND || step.type >= IBSHIFT_MSCCL_COPY;
    bool sends = step.type == IBSHIFT_MSCCL_SEND || step.type == IBSHIFT_MSCCL_RECV_COPY_SEND ||
                 step.type == IBSHIFT_MSCCL_RECV_REDUCE_SEND ||
                 step.type == IBSHIFT_MSCCL_RECV_REDUCE_COPY_SEND;
    bool receives = ibshift_msccl_receives(&step);

    (void)number_of(&r->text, tag, "s", (int32_t)block->count, (int32_t)block->count);
    step.dep_block =
        number_of(&r->text, tag, "depid", IBSHIFT_MSCCL_NONE, IBSHIFT_MSCCL_BLOCKS_MOST);
    step.dep_step = number_of(&r->text, tag, "deps", IBSHIFT_MSCCL_NONE, STEPS_MOST);
    if (step.type != IBSHIFT_MSCCL_NOP) {
        step.count = (uint32_t)number_of(&r->text, tag, "cnt", 1, CHUNKS_MOST);
        if (has_src) {
            step.src_buf = buffer_of(&r->text, tag, "srcbuf");
            step.src = chunks_of(r, tag, "srcoff", step.src_buf, step.count);
        }
        if (step.type != IBSHIFT_MSCCL_SEND) {
            step.dst_buf = buffer_of(&r->text, tag, "dstbuf");
            step.dst = chunks_of(r, tag, "dstoff", step.dst_buf, step.count);
        }
    }
    if ((sends && block->to < 0) || (receives && block->from < 0)) {
        ibshift_text_fail(&r->text, "its <tb> has no peer to %s",
                          sends && block->to < 0 ? "send to" : "receive from");
    }
    program->steps = make_room(r, program->steps, program->step_count, &r->step_room, sizeof(step));
    if (r->text.rc == 0 && program->step_count == STEPS_MOST) {
        ibshift_text_fail(&r->text, "more than %d steps", STEPS_MOST);
    }
    if (r->text.rc == 0) {
        program->steps[program->step_count++] = step;
        block->count++;
    }
}

static void read_block(struct reader *r, const struct tag *tag, uint32_t rank)
{
    struct ibshift_msccl *program = r->program;
    int32_t last = (int32_t)program->ranks - 1;
    struct ibshift_msccl_block block = {.rank = rank,
                                        .line = (uint32_t)r->text.line,
                                        .first = program->step_count,
                                        .receiver = IBSHIFT_MSCCL_NONE,
                                        .sender = IBSHIFT_MSCCL_NONE};
    int32_t number = (int32_t)(program->block_count - program->first[rank]);

    (void)number_of(&r->text, tag, "id", number, number);
    block.to = number_of(&r->text, tag, "send", IBSHIFT_MSCCL_NONE, last);
    block.from = number_of(&r->text, tag, "recv", IBSHIFT_MSCCL_NONE, last);
    block.channel = (uint32_t)number_of(&r->text, tag, "chan", 0, IBSHIFT_MSCCL_BLOCKS_MOST);
    if (block.to == (int32_t)rank || block.from == (int32_t)rank) {
        ibshift_text_fail(&r->text, "gpu %u is its own peer", rank);
    }
    program->blocks =
        make_room(r, program->blocks, program->block_count, &r->block_room, sizeof(block));
    if (number == GPU_BLOCKS || program->block_count == IBSHIFT_MSCCL_BLOCKS_MOST) {
        ibshift_text_fail(&r->text, "more than %d thread blocks on gpu %u: too many", number, rank);
    }
    if (r->text.rc == 0) {
        program->blocks[program->block_count++] = block;
    }
}

/* <gpu>, its blocks and their steps, up to </gpu>. */
static void read_gpu(struct reader *r, const struct tag *gpu, uint32_t rank)
{
    static const char *const keys[IBSHIFT_BUFFERS] = {"i_chunks", "o_chunks", "s_chunks"};
    struct tag tag;
    int depth = 0; /* 1: within a <tb> */

    (void)number_of(&r->text, gpu, "id", (int32_t)rank, (int32_t)rank);
    for (int buffer = 0; buffer < IBSHIFT_BUFFERS; buffer++) {
        r->program->chunks[rank][buffer] =
            (uint32_t)number_of(&r->text, gpu, keys[buffer], 0, CHUNKS_MOST);
    }
    r->program->first[rank] = r->program->block_count;
    while (!gpu->is_empty && r->text.rc == 0) {
        if (!read_tag(&r->text, &tag)) {
            ibshift_text_fail(&r->text, "<gpu id=\"%u\"> does not end", rank);
        } else if (tag.is_end && is_word(tag.name, depth > 0 ? "tb" : "gpu")) {
            if (depth-- == 0) {
                break;
            }
        } else if (!tag.is_end && depth == 0 && is_word(tag.name, "tb")) {
            read_block(r, &tag, rank);
            depth += !tag.is_empty;
        } else if (!tag.is_end && tag.is_empty && depth == 1 && is_word(tag.name, "step")) {
            read_step(r, &tag);
        } else {
            ibshift_text_fail(&r->text, "<%s%.*s> does not belong here", tag.is_end ? "/" : "",
                              brief(tag.name), tag.name.at);
        }
    }
}

/* For which sizes it is, if that is said. */
static void read_bytes(struct reader *r, struct piece key, struct piece value)
{
    bool is_most = is_word(key, "maxBytes");
    char *end;

    if (is_most || is_word(key, "minBytes")) {
        r->program->bytes[is_most] = strtoull(value.at, &end, 10);
        if (!isdigit((unsigned char)*value.at) || end != value.at + value.length) {
            ibshift_text_fail(&r->text, "%.*s must be a whole number", (int)key.length, key.at);
        }
    }
}

static void read_program(struct reader *r)
{
    struct ibshift_msccl *program = r->program;
    struct tag tag;

    if (!read_tag(&r->text, &tag) || tag.is_end || !is_word(tag.name, "algo")) {
        ibshift_text_fail(&r->text, "<algo> is missing: this is no MSCCL XML");
        return;
    }
    program->collective = collective_of(&r->text, &tag);
    program->ranks = (uint32_t)number_of(&r->text, &tag, "ngpus", 1, IBSHIFT_MSCCL_RANKS_MOST);
    program->in_place = number_of(&r->text, &tag, "inplace", 0, 1) > 0;
    for (uint32_t i = 0; i < tag.count; i++) {
        read_bytes(r, tag.key[i], tag.value[i]);
    }
    if (r->text.rc != 0) {
        return;
    }
    program->first = calloc(program->ranks + 1, sizeof(*program->first));
    program->chunks = calloc(program->ranks, sizeof(*program->chunks));
    if (program->first == NULL || program->chunks == NULL) {
        r->text.rc = -ENOMEM;
        return;
    }
    for (uint32_t rank = 0; rank < program->ranks && r->text.rc == 0; rank++) {
        if (!read_tag(&r->text, &tag) || tag.is_end || !is_word(tag.name, "gpu")) {
            ibshift_text_fail(&r->text, "there are %u <gpu> of %u", rank, program->ranks);
            return;
        }
        read_gpu(r, &tag, rank);
        program->first[rank + 1] = program->block_count;
    }
    if (r->text.rc == 0 &&
        (!read_tag(&r->text, &tag) || !tag.is_end || !is_word(tag.name, "algo"))) {
        ibshift_text_fail(&r->text, "</algo> is missing behind %u <gpu>", program->ranks);
    } else if (r->text.rc == 0 && read_tag(&r->text, &tag)) {
        ibshift_text_fail(&r->text, "something follows </algo>");
    }
}

/* Who takes what a block sends: the other end of its channel. */
static void connect(struct reader *r, uint32_t index)
{
    struct ibshift_msccl *program = r->program;
    struct ibshift_msccl_block *block = &program->blocks[index];

    for (uint32_t k = program->first[block->to]; k < program->first[block->to + 1]; k++) {
        struct ibshift_msccl_block *other = &program->blocks[k];

        if (other->from != (int32_t)block->rank || other->channel != block->channel) {
            continue;
        }
        if (block->receiver >= 0 || other->sender >= 0) {
            ibshift_text_fail(&r->text,
                              "two thread blocks between gpu %u and gpu %d have channel %u",
                              block->rank, block->to, block->channel);
        }
        block->receiver = (int32_t)k;
        other->sender = (int32_t)index;
    }
    if (block->receiver < 0) {
        ibshift_text_fail(&r->text,
                          "gpu %d has no thread block that receives from gpu %u on channel %u",
                          block->to, block->rank, block->channel);
    }
}

static void check_step(struct reader *r, const struct ibshift_msccl_step *step, uint32_t rank)
{
    const struct ibshift_msccl *program = r->program;
    uint32_t blocks = program->first[rank + 1] - program->first[rank];
    const struct ibshift_msccl_block *own = &program->blocks[program->first[rank]];
    bool writes = step->type > IBSHIFT_MSCCL_SEND && step->type != IBSHIFT_MSCCL_RECV_REDUCE_SEND;

    if ((step->dep_block < 0) != (step->dep_step < 0) ||
        (step->dep_block >= 0 && ((uint32_t)step->dep_block >= blocks ||
                                  (uint32_t)step->dep_step >= own[step->dep_block].count))) {
        ibshift_text_fail(&r->text, "gpu %u has no step %d of thread block %d to wait for", rank,
                          step->dep_step, step->dep_block);
    }
    if (writes && step->dst_buf == IBSHIFT_SEND && !program->in_place) {
        ibshift_text_fail(&r->text, "it writes i, which is only right in place (inplace=\"1\")");
    }
    if (program->collective < IBSHIFT_REDUCE &&
        (step->type == IBSHIFT_MSCCL_REDUCE || ibshift_msccl_reduces(step))) {
        ibshift_text_fail(&r->text, "%s reduces nothing",
                          ibshift_collective_name(program->collective));
    }
}

/* What needs the whole program to be known. */
static void check_program(struct reader *r)
{
    const struct ibshift_msccl *program = r->program;

    for (uint32_t i = 0; i < program->block_count && r->text.rc == 0; i++) {
        const struct ibshift_msccl_block *block = &program->blocks[i];

        r->text.line = (int)block->line;
        if (block->to >= 0) {
            connect(r, i);
        }
        for (uint32_t at = block->first; at < block->first + block->count && r->text.rc == 0;
             at++) {
            r->text.line = (int)program->steps[at].line;
            check_step(r, &program->steps[at], block->rank);
        }
    }
}

int ibshift_msccl_parse(const char *text, size_t length, const char *name,
                        struct ibshift_msccl *program, char *error)
{
    struct reader r = {.text = {.name = name, .at = text, .end = text + length, .line = 1},
                       .program = program};

    r.text.error = error;
    r.text.at +=
        length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* the order of bytes */
    error[0] = '\0';
    *program = (struct ibshift_msccl){.name = name};
    read_program(&r);
    check_program(&r);
    if (r.text.rc == -ENOMEM) {
        snprintf(error, IBSHIFT_TEXT_ERROR, "%.100s: no memory", name);
    }
    if (r.text.rc != 0) {
        ibshift_msccl_free(program);
    }
    return r.text.rc;
}

void ibshift_msccl_free(struct ibshift_msccl *program)
{
    free(program->first);
    free(program->chunks);
    free(program->blocks);
    free(program->steps);
}
