/* Reads the XML of MSCCL: as much of the language as its files have, elements and attributes. */
#include "msccl/msccl.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANKS_MOST = 1024,
    BLOCKS_MOST = 1 << 16, /* of all ranks */
    STEPS_MOST = 1 << 20,
    CHUNKS_MOST = 1 << 16,
    ATTRIBUTES = 24
};

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

    while (text->at < text->end && (isalnum((unsigned char)*text->at) || *text->at == '_')) {
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

        if (is_comment || (left >= 2 && memcmp(text->at, "<?", 2) == 0)) {
            skip_to(text, is_comment ? "-->" : "?>", is_comment ? "a comment" : "a declaration");
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
