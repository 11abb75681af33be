#include "fabric/graph/lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

FILE *ibshift_lines_file(const char *path, struct ibshift_error *err)
{
    FILE *file = fopen(path, "re");
    struct stat info;

    if (file == NULL) {
        ibshift_fail(err, -errno, "%s: %s", path, strerror(errno));
        return NULL;
    }
    if (fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode)) {
        fclose(file);
        ibshift_fail(err, -EISDIR, "%s: is a folder, not a file", path);
        return NULL;
    }
    return file;
}

struct ibshift_lines *ibshift_lines_open(const char *path, struct ibshift_error *err)
{
    FILE *file = ibshift_lines_file(path, err);

    return file == NULL ? NULL : ibshift_lines_from(file, path, err);
}

struct ibshift_lines *ibshift_lines_from(FILE *file, const char *name, struct ibshift_error *err)
{
    struct ibshift_lines *lines = file == NULL ? NULL : malloc(sizeof(*lines));

    if (lines == NULL) {
        ibshift_fail(err, -ENOMEM, "no memory");
        if (file != NULL) {
            fclose(file);
        }
        return NULL;
    }
    lines->file = file;
    lines->name = name;
    lines->err = err;
    lines->number = 0;
    lines->at = lines->filled = 0;
    lines->text[0] = '\0';
    return lines;
}

void ibshift_lines_close(struct ibshift_lines *lines)
{
    fclose(lines->file);
    free(lines);
}

int ibshift_lines_fail(const struct ibshift_lines *lines, int code, const char *format, ...)
{
    char reason[384];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    return ibshift_fail(lines->err, code, "%s:%u: %s", lines->name, lines->number, reason);
}

int ibshift_lines_where(const struct ibshift_lines *lines, int code)
{
    if (code < 0 && lines->err != NULL) {
        struct ibshift_error reason = *lines->err;

        ibshift_lines_fail(lines, code, "%s", reason.text);
    }
    return code < 0 ? code : 0;
}

static int fill(struct ibshift_lines *lines)
{
    if (lines->at == lines->filled) {
        lines->at = 0;
        lines->filled = fread(lines->buffer, 1, sizeof(lines->buffer), lines->file);
    }
    return lines->filled > lines->at;
}

const char *ibshift_lines_head(struct ibshift_lines *lines, size_t *size)
{
    fill(lines);
    *size = lines->filled - lines->at;
    return lines->buffer + lines->at;
}

int ibshift_lines_next(struct ibshift_lines *lines)
{
    size_t length = 0;
    int any = 0;

    lines->number++;
    while (fill(lines)) {
        const char *start = lines->buffer + lines->at;
        size_t rest = lines->filled - lines->at;
        const char *end = memchr(start, '\n', rest);
        size_t part = end != NULL ? (size_t)(end - start) : rest;

        any = 1;
        if (length + part >= sizeof(lines->text)) {
            return ibshift_lines_fail(lines, -E2BIG, "line longer than %zu characters",
                                      sizeof(lines->text) - 1);
        }
        if (memchr(start, '\0', part) != NULL) {
            return ibshift_lines_fail(lines, -EINVAL, "a zero byte: not a text file");
        }
        memcpy(lines->text + length, start, part);
        length += part;
        lines->at += part + (end != NULL);
        if (end != NULL) {
            break;
        }
    }
    if (ferror(lines->file)) {
        return ibshift_lines_fail(lines, -EIO, "cannot be read further: %s", strerror(errno));
    }
    length -= length > 0 && lines->text[length - 1] == '\r';
    lines->text[length] = '\0';
    return any;
}

int ibshift_lines_each(struct ibshift_lines *lines, int (*take)(void *context), void *context)
{
    int rc;

    while ((rc = ibshift_lines_next(lines)) > 0) {
        rc = take(context);
        if (rc != 0) {
            break;
        }
    }
    return rc;
}

const char *ibshift_scan_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t') {
        at++;
    }
    return at;
}

/* 16: it is none. */
static unsigned digit_of(char c)
{
    unsigned decimal = (unsigned)(c - '0'), letter = (unsigned)((c | 0x20) - 'a');

    return decimal < 10 ? decimal : letter < 6 ? letter + 10 : 16;
}

static const char *scan_digits(const char *at, unsigned base, uint64_t *value)
{
    const char *start = at;

    *value = 0;
    for (unsigned digit; (digit = digit_of(*at)) < base; at++) {
        *value = *value * base + digit;
    }
    return at == start || at - start > 16 ? NULL : at;
}

const char *ibshift_scan_decimal(const char *at, uint64_t *value)
{
    return at == NULL ? NULL : scan_digits(ibshift_scan_blanks(at), 10, value);
}

const char *ibshift_scan_hex(const char *at, uint64_t *value)
{
    if (at == NULL) {
        return NULL;
    }
    at = ibshift_scan_blanks(at);
    return scan_digits(at + (at[0] == '0' && (at[1] == 'x' || at[1] == 'X') ? 2 : 0), 16, value);
}

static const char *scan_quoted(const char *at, char *text, size_t size)
{
    const char *start = ibshift_scan_blanks(at) + 1,
               *end = start[-1] == '"' ? strchr(start, '"') : NULL;

    if (end == NULL || (size_t)(end - start) >= size) {
        return NULL;
    }
    memcpy(text, start, (size_t)(end - start));
    text[end - start] = '\0';
    return end + 1;
}

const char *ibshift_scan(const char *at, const char *pattern, ...)
{
    va_list args;

    va_start(args, pattern);
    while (at != NULL && *pattern != '\0') {
        char sign = *pattern++;

        if (sign == ' ') {
            at = ibshift_scan_blanks(at);
        } else if (sign != '%') {
            at = *at == sign ? at + 1 : NULL;
        } else if (*pattern == 'q') {
            char *text = va_arg(args, char *);

            at = scan_quoted(at, text, va_arg(args, size_t));
            pattern++;
        } else if (*pattern == '*') {
            size_t length = strcspn(++pattern, "%");

            at = memmem(at, strlen(at), pattern, length);
            at = at == NULL ? NULL : at + length;
            pattern += length;
        } else {
            uint64_t *value = va_arg(args, uint64_t *);

            at = *pattern++ == 'x' ? ibshift_scan_hex(at, value) : ibshift_scan_decimal(at, value);
        }
    }
    va_end(args);
    return at;
}
