#include "fabric/graph/lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

int ibshift_lines_open(struct ibshift_lines *lines, const char *path, struct ibshift_error *err)
{
    FILE *file = fopen(path, "re");
    struct stat info;

    if (file == NULL) {
        return ibshift_fail(err, -errno, "%s: %s", path, strerror(errno));
    }
    if (fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode)) {
        fclose(file);
        return ibshift_fail(err, -EISDIR, "%s: is a folder, not a file", path);
    }
    ibshift_lines_from(lines, file, path);
    return 0;
}

void ibshift_lines_from(struct ibshift_lines *lines, FILE *file, const char *name)
{
    lines->file = file;
    lines->name = name;
    lines->number = 0;
    lines->at = lines->filled = 0;
    lines->text[0] = '\0';
}

void ibshift_lines_close(struct ibshift_lines *lines)
{
    if (lines->file != NULL) {
        fclose(lines->file);
        lines->file = NULL;
    }
}

int ibshift_lines_fail(const struct ibshift_lines *lines, struct ibshift_error *err, int code,
                       const char *format, ...)
{
    char reason[384];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    return ibshift_fail(err, code, "%s:%u: %s", lines->name, lines->number, reason);
}

static int fill(struct ibshift_lines *lines)
{
    if (lines->at == lines->filled) {
        lines->at = 0;
        lines->filled = fread(lines->buffer, 1, sizeof(lines->buffer), lines->file);
    }
    return lines->filled > lines->at;
}

int ibshift_lines_char(struct ibshift_lines *lines)
{
    int c = fill(lines) ? (unsigned char)lines->buffer[lines->at++] : EOF;

    lines->number += lines->number == 0 || c == '\n';
    return c;
}

const char *ibshift_lines_head(struct ibshift_lines *lines, size_t *size)
{
    fill(lines);
    *size = lines->filled - lines->at;
    return lines->buffer + lines->at;
}

int ibshift_lines_next(struct ibshift_lines *lines, struct ibshift_error *err)
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
            return ibshift_lines_fail(lines, err, -E2BIG, "line longer than %zu characters",
                                      sizeof(lines->text) - 1);
        }
        if (memchr(start, '\0', part) != NULL) {
            return ibshift_lines_fail(lines, err, -EINVAL, "a zero byte: not a text file");
        }
        memcpy(lines->text + length, start, part);
        length += part;
        lines->at += part + (end != NULL);
        if (end != NULL) {
            break;
        }
    }
    if (ferror(lines->file)) {
        return ibshift_lines_fail(lines, err, -EIO, "cannot be read further: %s", strerror(errno));
    }
    length -= length > 0 && lines->text[length - 1] == '\r';
    lines->text[length] = '\0';
    return any;
}

const char *ibshift_scan_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t') {
        at++;
    }
    return at;
}

static const char *scan_digits(const char *at, unsigned base, uint64_t *value)
{
    const char *start = at;

    *value = 0;
    while (isxdigit((unsigned char)*at) && (base == 16 || isdigit((unsigned char)*at))) {
        unsigned digit = isdigit((unsigned char)*at) ? (unsigned)(*at - '0')
                                                     : (unsigned)(tolower(*at) - 'a' + 10);

        if (at - start == 16) {
            return NULL;
        }
        *value = *value * base + digit;
        at++;
    }
    return at == start ? NULL : at;
}

const char *ibshift_scan_decimal(const char *at, uint64_t *value)
{
    return scan_digits(ibshift_scan_blanks(at), 10, value);
}

const char *ibshift_scan_hex(const char *at, uint64_t *value)
{
    at = ibshift_scan_blanks(at);
    if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
        at += 2;
    }
    return scan_digits(at, 16, value);
}

const char *ibshift_scan_quoted(const char *at, char *text, size_t size)
{
    const char *end;

    at = ibshift_scan_blanks(at);
    if (*at != '"') {
        return NULL;
    }
    at++;
    end = strchr(at, '"');
    if (end == NULL || (size_t)(end - at) >= size) {
        return NULL;
    }
    memcpy(text, at, (size_t)(end - at));
    text[end - at] = '\0';
    return end + 1;
}
