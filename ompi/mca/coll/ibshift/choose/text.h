/* Small files of text that people write, and names in them that nobody knows. */
#ifndef IBSHIFT_CHOOSE_TEXT_H
#define IBSHIFT_CHOOSE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The whole file; the caller frees *text. 0, or a negative errno with an error of at most `size` bytes that names the file: it is
 * larger than `limit` bytes, and therefore no `what`.
 */
int ibshift_text_read(const char *path, size_t limit, const char *what, char **text, size_t *length,
                      char *error, size_t size);

/* A word, and of the names that it was compared with the first that begins most like it. */
struct ibshift_nearest {
    const char *word;
    char name[64]; /* empty: none was compared */
    size_t alike;  /* letters that both begin with */
    bool is_known; /* one of the names is the word */
};

void ibshift_nearest_compare(struct ibshift_nearest *nearest, const char *name);

#endif
