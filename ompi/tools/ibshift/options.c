#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define USAGE "usage: %s [OPTION...] %s"

enum { OPTIONS_MOST = 64, HELP_COLUMN = 25 };

static const char *name_of(const struct cli_args *args)
{
    static char name[64];

    const char *command = args->command != NULL ? args->command : "";

    /* Behind a colon: where in a file. */
    snprintf(name, sizeof(name), "%s%s%.*s", cli_program, args->command != NULL ? " " : "",
             (int)strcspn(command, ":"), command);
    return name;
}

static void print_usage(const struct cli_args *args)
{
    char left[64];

    printf(USAGE "\n", name_of(args), args->usage);
    if (args->summary != NULL) {
        cli_print_help(stdout, "", 0, args->summary);
    }
    putchar('\n');
    if (args->preface != NULL) {
        args->preface();
    }
    for (const struct cli_option *o = args->options; o->name != NULL; o++) {
        char letter[8] = "";

        if (o->letter != 0) {
            snprintf(letter, sizeof(letter), "-%c, ", o->letter);
        }
        snprintf(left, sizeof(left), "  %s%s%s%s", letter, o->name, o->value != NULL ? " " : "",
                 o->value != NULL ? o->value : "");
        cli_print_help(stdout, left, HELP_COLUMN, o->help);
    }
    cli_print_help(stdout, "  -h, --help", HELP_COLUMN, "this text");
    if (args->epilogue != NULL) {
        args->epilogue();
    }
}

const struct cli_option *cli_find(const struct cli_args *args, const char *text, size_t length)
{
    for (const struct cli_option *o = args->options; o->name != NULL; o++) {
        if ((length == 2 && text[1] == o->letter) ||
            (strlen(o->name) == length && strncmp(o->name, text, length) == 0)) {
            return o;
        }
    }
    return NULL;
}

static int unknown_option(const struct cli_args *args, const char *text, size_t length)
{
    const char *names[OPTIONS_MOST];
    char name[40], list[96];
    size_t count = 0;

    for (const struct cli_option *o = args->options; o->name != NULL && count < OPTIONS_MOST; o++) {
        names[count++] = o->name;
    }
    snprintf(name, sizeof(name), "%.*s", (int)length, text);
    snprintf(list, sizeof(list), "%s --help lists them", name_of(args));
    return cli_unknown(args->command, "unknown option", name, names, count, list);
}

int cli_bad_value(const char *command, const char *option, const char *value, const char *wanted)
{
    return cli_error(command, "%s '%.40s': must be %s", option, value, wanted);
}

static int cli_written(const char *command, const char *path, int rc)
{
    return rc == 0 ? CLI_OK
                   : cli_error(command, "%s: %s", strcmp(path, "-") == 0 ? "standard output" : path,
                               strerror(-rc));
}

/* Its value may have K, M or G behind it. */
static bool has_bytes(const struct cli_option *o)
{
    return o->value != NULL && strcmp(o->value, "BYTES") == 0;
}

static int take_number(const struct cli_args *args, const struct cli_option *o, const char *text)
{
    bool is_whole = o->kind != CLI_REAL;
    char wanted[96], *end;
    double value = strtod(text, &end);
    uint64_t bytes;

    if (is_whole && cli_parse_bytes(text, strlen(text), &bytes) == 0 && has_bytes(o)) {
        value = (double)bytes;
        end = (char *)text + strlen(text);
    }
    if (end == text || *end != '\0' || !(value >= o->low && value <= o->high) ||
        (is_whole && value != floor(value))) {
        snprintf(wanted, sizeof(wanted), "a %snumber from %.15g to %.15g%s",
                 is_whole ? "whole " : "", o->low, o->high, has_bytes(o) ? ", as 4096 or 4K" : "");
        return cli_bad_value(args->command, o->name, text, wanted);
    }
    if (o->kind == CLI_WHOLE) {
        *(uint32_t *)o->where = (uint32_t)value;
    } else {
        *(double *)o->where = value;
    }
    return CLI_OK;
}

static int take_long(const struct cli_args *args, const struct cli_option *o, const char *text)
{
    char wanted[96], *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 0);
    if (has_bytes(o) && cli_parse_bytes(text, strlen(text), &value) == 0) {
        end = (char *)text + strlen(text);
    }
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || (double)value < o->low ||
        (double)value > o->high) {
        snprintf(wanted, sizeof(wanted), "a whole number from %.0f to %.0f", o->low, o->high);
        return cli_bad_value(args->command, o->name, text, wanted);
    }
    *(uint64_t *)o->where = value;
    return CLI_OK;
}

static int take_choice(const struct cli_args *args, const struct cli_option *o, const char *text)
{
    char wanted[80] = "one of:";
    int *which = o->where;

    for (int i = 0; o->words[i] != NULL; i++) {
        if (strcmp(o->words[i], text) == 0) {
            *which = (int)o->low + i;
            return CLI_OK;
        }
        snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), "%s %s",
                 i > 0 ? "," : "", o->words[i]);
    }
    return cli_bad_value(args->command, o->name, text, wanted);
}

int cli_take(const struct cli_args *args, const struct cli_option *o, const char *text)
{
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)o->where = true;
        return CLI_OK;
    case CLI_TEXT:
    case CLI_OUTPUT:
        *(const char **)o->where = text;
        return CLI_OK;
    case CLI_WHOLE:
    case CLI_WHOLE_REAL:
    case CLI_REAL:
        return take_number(args, o, text);
    case CLI_LONG:
        return take_long(args, o, text);
    case CLI_CHOICE:
        return take_choice(args, o, text);
    case CLI_TAKEN:
        return o->take(o->where, text);
    }
    return CLI_USAGE;
}

static int take_value(struct cli_args *args, const struct cli_option *o, const char *value)
{
    if (o->kind != CLI_OUTPUT && args->value_count < CLI_VALUES) {
        args->values[args->value_count++] = value;
    }
    return cli_take(args, o, value);
}

/* *at moves over a value that stands apart. */
static int take_option(struct cli_args *args, int argc, char **argv, int *at)
{
    const char *text = argv[*at], *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const struct cli_option *o = cli_find(args, text, length);

    if (o == NULL) {
        return strcmp(text, "--quiet") == 0 ? CLI_OK : unknown_option(args, text, length);
    }
    if (o->kind == CLI_FLAG && equals != NULL) {
        return cli_error(args->command, "%s takes no value", o->name);
    }
    if (o->kind == CLI_FLAG) {
        return cli_take(args, o, NULL);
    }
    if (equals != NULL) {
        return take_value(args, o, equals + 1);
    }
    if (*at + 1 == argc) {
        return cli_error(args->command, "%s needs a value: %s", o->name, o->help);
    }
    return take_value(args, o, argv[++*at]);
}

static int take_word(struct cli_args *args, const char *text)
{
    if (args->word != NULL) {
        return args->word(args->context, text);
    }
    if (args->count == args->most) {
        return cli_error(args->command, "too many arguments: '%s'; " USAGE, text, name_of(args),
                         args->usage);
    }
    args->positional[args->count++] = text;
    return CLI_OK;
}

static int check_needed(const struct cli_args *args)
{
    for (const struct cli_option *o = args->options; o->name != NULL; o++) {
        if (o->is_needed && *(const char **)o->where == NULL) {
            return cli_error(args->command, "wants %s %s", o->name, o->value);
        }
    }
    return args->count < args->least
               ? cli_error(args->command, "too few arguments; " USAGE, name_of(args), args->usage)
               : CLI_OK;
}

int cli_check_output(const char *command, const char *path)
{
    return cli_written(command, path, output_check(path));
}

int cli_output_open(const char *command, const char *path, struct output *out)
{
    return cli_written(command, path, output_open(out, path));
}

int cli_output_close(const char *command, const char *path, struct output *out, int status)
{
    int rc = output_close(out, status == CLI_OK);

    return status == CLI_OK ? cli_written(command, path, rc) : status;
}

static const char *output_of(const struct cli_option *o)
{
    return o->kind == CLI_OUTPUT ? *(const char **)o->where : NULL;
}

static int check_read(const struct cli_args *args, const char *path)
{
    bool is_read = false;

    for (unsigned i = 0; i < args->count; i++) {
        is_read |= output_replaces(path, args->positional[i]);
    }
    for (unsigned i = 0; i < args->value_count; i++) {
        is_read |= output_replaces(path, args->values[i]);
    }
    return is_read ? cli_error(args->command, "'%s' would replace what is read: name another file",
                               path)
                   : CLI_OK;
}

/* Two of one name would leave one, and one of the name of an input would cost that. */
static int check_outputs(const struct cli_args *args)
{
    int rc = CLI_OK;

    for (const struct cli_option *o = args->options; rc == CLI_OK && o->name != NULL; o++) {
        const char *path = output_of(o);

        for (const struct cli_option *p = args->options; path != NULL && p < o; p++) {
            if (output_of(p) != NULL && output_is_same(output_of(p), path)) {
                return cli_error(args->command, "%s and %s both write '%s': name two files",
                                 p->name, o->name, path);
            }
        }
        rc = path != NULL ? check_read(args, path) : CLI_OK;
        rc = path != NULL && rc == CLI_OK ? cli_check_output(args->command, path) : rc;
    }
    return rc;
}

int cli_parse(struct cli_args *args, int argc, char **argv)
{
    int status = CLI_OK;

    args->rest = argc;
    for (int i = 1; i < argc && status == CLI_OK; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            if (!cli_is_mute) {
                print_usage(args);
            }
            args->helped = true;
            return CLI_OK;
        }
        if (args->is_before && (argv[i][0] != '-' || strcmp(argv[i], "--") == 0)) {
            args->rest = i + (argv[i][0] == '-');
            return CLI_OK;
        }
        status = argv[i][0] == '-' && argv[i][1] != '\0' ? take_option(args, argc, argv, &i)
                                                         : take_word(args, argv[i]);
    }
    status = status == CLI_OK ? check_needed(args) : status;
    return status == CLI_OK ? check_outputs(args) : status;
}
