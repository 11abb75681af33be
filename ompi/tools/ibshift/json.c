#include "json.h"

#include <stdarg.h>

/* "text" with what JSON wants escaped. */
static void json_quote(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') {
            fprintf(out, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7f) {
            fprintf(out, "\\u%04x", c);
        } else {
            fputc(c, out);
        }
    }
    fputc('"', out);
}

static void name_member(struct json *j, const char *name)
{
    fputs(!j->has_member ? "" : j->depth == 1 ? ",\n " : ", ", j->out);
    j->has_member = true;
    if (name != NULL) {
        json_quote(j->out, name);
        fputs(": ", j->out);
    }
}

void json_open(struct json *j, const char *name, char bracket)
{
    bool is_row = name == NULL && j->depth == 2 && bracket == '{';

    if (is_row) {
        fputs(j->has_member ? ",\n  " : "\n  ", j->out);
    } else {
        name_member(j, name);
    }
    fputc(bracket, j->out);
    j->depth++;
    j->has_member = false;
}

void json_close(struct json *j, char bracket)
{
    fputc(bracket, j->out);
    j->depth--;
    j->has_member = true;
}

void json_begin(struct json *j, FILE *out)
{
    *j = (struct json){.out = out};
    json_open(j, NULL, '{');
    json_value(j, "layout", "%d", JSON_LAYOUT);
}

void json_end(struct json *j)
{
    json_close(j, '}');
    fputc('\n', j->out);
}

void json_text(struct json *j, const char *name, const char *text)
{
    name_member(j, name);
    json_quote(j->out, text);
}

void json_bool(struct json *j, const char *name, bool value)
{
    json_value(j, name, "%s", value ? "true" : "false");
}

void json_value(struct json *j, const char *name, const char *format, ...)
{
    va_list values;

    name_member(j, name);
    va_start(values, format);
    vfprintf(j->out, format, values);
    va_end(values);
}
