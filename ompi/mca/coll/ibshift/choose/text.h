/* Small files of text that people write: numbers, words and JSON in them, and names that nobody knows. */
#ifndef IBSHIFT_CHOOSE_TEXT_H
#define IBSHIFT_CHOOSE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IBSHIFT_TEXT_ERROR = 256, IBSHIFT_TEXT_WORD = 64 };

/*
 * The whole file; the caller frees *text. 0, or a negative errno with an error that names the file: it is
 * larger than `limit` bytes, and therefore no `what`. NULL: such a thing may be larger.
 */
int ibshift_text_read(const char *path, size_t limit, const char *what, char **text, size_t *length,
                      char *error);

/* What is read. After an error it stands at the end, and every reader does nothing and gives zeros. */
struct ibshift_text {
    const char *name, *at, *end;
    int line;    /* 0: errors have none */
    int rc;      /* of the first error */
    int depth;   /* of a value that nobody reads */
    char *error; /* IBSHIFT_TEXT_ERROR bytes: "name:line: what is wrong" */
};

void ibshift_text_fail(struct ibshift_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* To the next token; false: only the end of the line, where that is asked for, or of the file. comment: '\0': there is none. */
bool ibshift_text_skip(struct ibshift_text *text, bool is_line, char comment);
/* A whole number that stands here. */
uint64_t ibshift_text_number(struct ibshift_text *text, uint64_t most, const char *what);

/* JSON. Words are without escapes: no name here has any. word: NULL: of any length, with escapes, that nobody reads. */
void ibshift_text_word(struct ibshift_text *text, char *word);
/* Each member of an object, whose value is read by member(); NULL: nobody reads them. */
void ibshift_text_object(struct ibshift_text *text, void (*member)(void *context, const char *key),
                         void *context);
void ibshift_text_array(struct ibshift_text *text, void (*element)(void *context), void *context);
void ibshift_text_skip_value(void *text);

/* A word, and of the names that it was compared with the first that begins most like it. */
struct ibshift_nearest {
    const char *word;
    char name[64]; /* empty: none was compared */
    size_t alike;  /* letters that both begin with */
    bool is_known; /* one of the names is the word */
};

void ibshift_nearest_compare(struct ibshift_nearest *nearest, const char *name);

#endif
