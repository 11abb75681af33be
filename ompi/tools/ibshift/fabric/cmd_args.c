/* Arguments and printing shared by the subcommands of `ibshift fabric`. */
#include "fabric/cmd.h"

#include <string.h>

#define USAGE "usage: ibshift %s [OPTION...] %s"

static void usage(const struct fabric_args *args)
{
    char left[64];

    if (args->preface != NULL) {
        args->preface();
    } else {
        printf(USAGE "\n\n", args->command, args->usage);
    }
    for (const struct fabric_option *o = args->options; o->name != NULL; o++) {
        bool is_output = strcmp(o->name, "--output") == 0;

        snprintf(left, sizeof(left), "  %s%s%s%s", is_output ? "-o, " : "", o->name,
                 o->argument ? " " : "", o->argument ? o->argument : "");
        cli_print_help(stdout, left, 25, o->help);
    }
    cli_print_help(stdout, "  -h, --help", 25, "this text");
}

static const struct fabric_option *find_option(const struct fabric_args *args, const char *text,
                                               size_t length)
{
    if (length == 2 && strncmp(text, "-o", 2) == 0) {
        return find_option(args, "--output", strlen("--output"));
    }
    for (const struct fabric_option *o = args->options; o->name != NULL; o++) {
        if (strlen(o->name) == length && strncmp(o->name, text, length) == 0) {
            return o;
        }
    }
    return NULL;
}

static int unknown_option(const struct fabric_args *args, const char *text)
{
    const char *names[32], *nearest;
    size_t count = 0;

    for (const struct fabric_option *o = args->options; o->name != NULL && count < 32; o++) {
        names[count++] = o->name;
    }
    nearest = cli_nearest(text, names, count);
    return nearest != NULL
               ? cli_error(args->command, "unknown option '%s': did you mean '%s'?", text, nearest)
               : cli_error(args->command, "unknown option '%s'; ibshift %s --help lists them", text,
                           args->command);
}

/* --name, --name VALUE or --name=VALUE; *at moves over a value that stands apart. */
static int take_option(const struct fabric_args *args, int argc, char **argv, int *at)
{
    const char *text = argv[*at], *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const struct fabric_option *o = find_option(args, text, length);

    if (o == NULL && strcmp(text, "--quiet") == 0) {
        return CLI_OK; /* scripts give it to every command, also to those without a progress bar */
    }
    if (o == NULL) {
        return unknown_option(args, text);
    }
    if (o->argument == NULL) {
        if (equals != NULL) {
            return cli_error(args->command, "%s takes no value", o->name);
        }
        *o->flag = true;
        return CLI_OK;
    }
    if (equals == NULL && *at + 1 == argc) {
        return cli_error(args->command, "%s wants %s", o->name, o->argument);
    }
    *o->value = equals != NULL ? equals + 1 : argv[++*at];
    return CLI_OK;
}

int fabric_args_parse(struct fabric_args *args, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage(args);
            args->helped = true;
            return CLI_OK;
        }
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            int rc = take_option(args, argc, argv, &i);

            if (rc != CLI_OK) {
                return rc;
            }
        } else if (args->count == args->most) {
            return cli_error(args->command, "too many arguments: '%s'; " USAGE, argv[i],
                             args->command, args->usage);
        } else {
            args->positional[args->count++] = argv[i];
        }
    }
    return args->count < args->least
               ? cli_error(args->command, "too few arguments; " USAGE, args->command, args->usage)
               : CLI_OK;
}

int fabric_args_fail(const struct fabric_args *args, const struct ibshift_error *err)
{
    return cli_error(args->command, "%s", err->text);
}

int fabric_args_load(const struct fabric_args *args, struct ibshift_fabric **fabric)
{
    struct ibshift_notes notes = {.count = 0};
    struct ibshift_error err = {""};
    const char *name = args->positional[0];
    int rc = ibshift_fabric_load(strcmp(name, "-") == 0 ? "/dev/stdin" : name, args->positional[1],
                                 fabric, &notes, &err);

    for (unsigned i = 0; i < notes.count && i < sizeof(notes.text) / sizeof(notes.text[0]); i++) {
        fprintf(stderr, "ibshift %s: note: %s\n", args->command, notes.text[i]);
    }
    return rc == 0 ? CLI_OK : fabric_args_fail(args, &err);
}
