/*
 * The options of all subcommands: one row is parser, help and, by test/lint/man, the man page.
 *
 * Every command takes --help and, since scripts give it to all of them, --quiet; --version is
 * main()'s. Options may stand anywhere: --name VALUE, --name=VALUE or -n VALUE. Programs of their own have no
 * command, and a row for --version.
 */
#ifndef IBSHIFT_OPTIONS_H
#define IBSHIFT_OPTIONS_H

#include <stdbool.h>

#include "cli.h"
#include "output.h"

enum cli_kind {
    CLI_FLAG,       /* bool: it was given; takes no value */
    CLI_TEXT,       /* const char *: as given */
    CLI_WHOLE,      /* uint32_t: within low and high */
    CLI_WHOLE_REAL, /* double: the same, for numbers that 32 bits do not hold */
    CLI_LONG,       /* uint64_t: the same */
    CLI_REAL,       /* double: within low and high */
    CLI_CHOICE,     /* int: which of the words, counted from low */
    CLI_TAKEN,      /* take(where, text) reads it: CLI_OK, or CLI_USAGE with its message */
    CLI_OUTPUT,     /* const char *: a file to write, which can be */
};

struct cli_option {
    const char *name; /* "--json" */
    char letter;      /* 'j': -j too; 0: none */
    enum cli_kind kind;
    const char *value; /* what the help calls its value; NULL: a flag */
    const char *help;
    void *where;
    double low, high;
    const char *const *words; /* ends with NULL */
    int (*take)(void *where, const char *text);
    bool is_needed; /* the command does nothing without it */
};

enum { CLI_POSITIONALS = 8, CLI_VALUES = 32 };

struct cli_args {
    const char *command;              /* "fabric show": for messages; NULL: the program itself */
    const char *usage;                /* "FABRIC [LFTS]" */
    const char *summary;              /* under the usage line; NULL: none */
    void (*preface)(void);            /* prints what stands before the options; NULL: nothing */
    void (*epilogue)(void);           /* behind them */
    const struct cli_option *options; /* ends with name NULL */
    unsigned least, most;             /* words that are no options */
    int (*word)(void *context, const char *text); /* takes them instead of positional; or NULL */
    bool is_before; /* options end at "--" or a word: a command of others */
    int rest;       /* where that begins */
    void *context;  /* the command's own */
    const char *positional[CLI_POSITIONALS];
    unsigned count;
    const char *values[CLI_VALUES]; /* of options that are no outputs: some are files */
    unsigned value_count;
    bool helped; /* --help was printed: nothing else to do */
};

/* CLI_OK, or CLI_USAGE with the message printed. */
int cli_parse(struct cli_args *args, int argc, char **argv);

/* One option as if it were given: its row, NULL where there is none; and its value. */
const struct cli_option *cli_find(const struct cli_args *args, const char *text, size_t length);
int cli_take(const struct cli_args *args, const struct cli_option *option, const char *value);

/* "--ranks '0': must be WANTED"; CLI_USAGE. */
int cli_bad_value(const char *command, const char *option, const char *value, const char *wanted);

/* Before the work: can the file be written? */
int cli_check_output(const char *command, const char *path);
/* output_open() and output_close() with their messages: CLI_OK or CLI_USAGE. A status other than CLI_OK
 * is returned, and what was there before stays. */
int cli_output_open(const char *command, const char *path, struct output *out);
int cli_output_close(const char *command, const char *path, struct output *out, int status);

/* The rows that look the same in every command. */
static inline struct cli_option cli_json_option(bool *is_json)
{
    return (struct cli_option){"--json",        'j', CLI_FLAG, NULL, "the same as a JSON object",
                               .where = is_json};
}

static inline struct cli_option cli_output_option(const char **path, const char *help)
{
    return (struct cli_option){"--output", 'o', CLI_OUTPUT, "FILE", help, .where = path};
}

static inline struct cli_option cli_quiet_option(bool *is_quiet)
{
    return (struct cli_option){"--quiet", 0, CLI_FLAG, NULL, "no progress bar", .where = is_quiet};
}

#endif
