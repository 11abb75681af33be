#include "choose/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 32 };

int ibshift_text_read(const char *path, size_t limit, const char *what, char **text, size_t *length,
                      char *error)
{
    FILE *file = fopen(path, "rb");
    int rc = 0;

    if (file == NULL) {
        rc = -errno;
        snprintf(error, IBSHIFT_TEXT_ERROR, "%.100s: cannot open: %s", path, strerror(-rc));
        return rc;
    }
    *text = malloc(limit + 1);
    errno = 0;
    *length = *text != NULL ? fread(*text, 1, limit + 1, file) : 0;
    if (*text == NULL || ferror(file)) {
        rc = *text == NULL ? -ENOMEM : errno != 0 ? -errno : -EIO;
        snprintf(error, IBSHIFT_TEXT_ERROR, "%.100s: cannot read: %s", path, strerror(-rc));
    } else if (*length > limit) {
        rc = -EINVAL;
        snprintf(error, IBSHIFT_TEXT_ERROR,
                 what == NULL ? "%.100s: larger than %zu MiB"
                              : "%.100s: larger than %zu bytes: this is not a %s",
                 path, what == NULL ? limit >> 20 : limit, what);
    }
    if (rc != 0) {
        free(*text);
    }
    fclose(file);
    return rc;
}

/* How both begin is enough for names of which few begin alike. */
void ibshift_nearest_compare(struct ibshift_nearest *nearest, const char *name)
{
    size_t alike = 0;

    while (name[alike] != '\0' && name[alike] == nearest->word[alike]) {
        alike++;
    }
    nearest->is_known |= name[alike] == '\0' && nearest->word[alike] == '\0';
    if (nearest->name[0] == '\0' || alike > nearest->alike) {
        nearest->alike = alike;
        snprintf(nearest->name, sizeof(nearest->name), "%s", name);
    }
}

void ibshift_text_fail(struct ibshift_text *p, const char *format, ...)
{
    va_list arguments;
    int used;

    if (p->rc == 0) {
        p->rc = -EINVAL;
        p->at = p->end;
        used = snprintf(p->error, IBSHIFT_TEXT_ERROR,
                        p->line > 0 ? "%.100s:%d: " : "%.100s: ", p->name, p->line);
        va_start(arguments, format);
        vsnprintf(p->error + used, IBSHIFT_TEXT_ERROR - (size_t)used, format, arguments);
        va_end(arguments);
    }
}

bool ibshift_text_skip(struct ibshift_text *p, bool is_line, char comment)
{
    for (; p->at < p->end; p->at++) {
        if (*p->at == comment && comment != '\0') {
            while (p->at + 1 < p->end && p->at[1] != '\n') {
                p->at++;
            }
        } else if (*p->at == '\n') {
            if (is_line) {
                return false;
            }
            p->line++;
        } else if (!isspace((unsigned char)*p->at)) {
            return true;
        }
    }
    return false;
}

uint64_t ibshift_text_number(struct ibshift_text *p, uint64_t most, const char *what)
{
    uint64_t value = 0;

    if (p->at == p->end || *p->at < '0' || *p->at > '9') {
        ibshift_text_fail(
            p, p->at == p->end ? "ends where %s should be" : "%s must be a whole number", what);
    }
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
        unsigned digit = (unsigned)(*p->at - '0');

        if (digit > most || value > (most - digit) / 10) {
            ibshift_text_fail(p, "%s must be at most %llu", what, (unsigned long long)most);
            return 0;
        }
        value = value * 10 + digit;
    }
    return value;
}

/* JSON, as much of it as rules need. */

static void expect(struct ibshift_text *p, char wanted)
{
    if (ibshift_text_skip(p, false, '\0') && *p->at == wanted) {
        p->at++;
    } else {
        ibshift_text_fail(p, "a '%c' is missing here", wanted);
    }
}

static bool takes(struct ibshift_text *p, char wanted)
{
    bool is_there = ibshift_text_skip(p, false, '\0') && *p->at == wanted;

    p->at += is_there;
    return is_there;
}

/* After one member: there is another one. */
static bool has_more(struct ibshift_text *p, char end)
{
    if (takes(p, ',')) {
        return true;
    }
    if (!takes(p, end)) {
        ibshift_text_fail(p, "a ',' or '%c' is missing here", end);
    }
    return false;
}

void ibshift_text_word(struct ibshift_text *p, char *word)
{
    size_t length = 0;

    expect(p, '"');
    for (; p->at < p->end && *p->at != '"' && *p->at != '\n'; p->at++, length++) {
        if (word == NULL) {
            p->at += *p->at == '\\' && p->at + 1 < p->end && p->at[1] != '\n';
        } else if (*p->at == '\\' || length == IBSHIFT_TEXT_WORD - 1) {
            ibshift_text_fail(p, "a text with an escape, or longer than %d letters",
                              IBSHIFT_TEXT_WORD - 1);
            break;
        } else {
            word[length] = *p->at;
        }
    }
    if (word != NULL) {
        word[length] = '\0';
    }
    if (p->at == p->end || *p->at != '"') {
        ibshift_text_fail(p, "a text that does not end in its line");
    }
    p->at += p->rc == 0;
}

void ibshift_text_object(struct ibshift_text *p, void (*member)(void *context, const char *key),
                         void *context)
{
    char key[IBSHIFT_TEXT_WORD];

    expect(p, '{');
    if (takes(p, '}')) {
        return;
    }
    do {
        ibshift_text_word(p, member != NULL ? key : NULL);
        expect(p, ':');
        if (p->rc == 0 && member != NULL) {
            member(context, key);
        } else {
            ibshift_text_skip_value(p);
        }
    } while (has_more(p, '}'));
}

void ibshift_text_array(struct ibshift_text *p, void (*element)(void *context), void *context)
{
    expect(p, '[');
    if (takes(p, ']')) {
        return;
    }
    do {
        element(context);
    } while (has_more(p, ']'));
}

void ibshift_text_skip_value(void *text)
{
    struct ibshift_text *p = text;
    char first = ibshift_text_skip(p, false, '\0') ? *p->at : '\0';
    const char *begin = p->at;

    if (++p->depth > DEPTH_MOST) {
        ibshift_text_fail(p, "nested more than %d times", DEPTH_MOST);
    } else if (first == '{') {
        ibshift_text_object(p, NULL, NULL);
    } else if (first == '[') {
        ibshift_text_array(p, ibshift_text_skip_value, p);
    } else if (first == '"') {
        ibshift_text_word(p, NULL);
    } else {
        while (p->at < p->end && strchr("{}[],: \t\r\n", *p->at) == NULL) {
            p->at++;
        }
        if (p->at == begin) {
            ibshift_text_fail(p, first == '\0' ? "ends within a value" : "a value is missing here");
        }
    }
    p->depth--;
}
