/* What all subcommands share: exit codes, messages, name suggestions. */
#ifndef IBSHIFT_CLI_H
#define IBSHIFT_CLI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1, /* the work was done and its answer is no */
    CLI_USAGE = 2,  /* bad input: nothing was written */
    CLI_UNFIT = 3,  /* good input that this engine cannot serve */
};

/* A subcommand gets argv[0] = its own name and returns an enum cli_exit. */
struct cli_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

/* Which program this is, "ibshift" where it does not say; and whether others of a job say what is wrong. */
extern const char *cli_program;
extern bool cli_is_mute;

/* Prints "ibshift COMMAND: message" to stderr (command NULL: "ibshift: message"), one line whatever bytes it has; returns
 * CLI_USAGE so that callers can return it. */
int cli_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_say(const char *command, const char *format, va_list args);

/* Ends the program with a status that is not CLI_OK, whose message has been printed. */
static inline void cli_must(int status)
{
    if (status != CLI_OK) {
        exit(status);
    }
}

/* The candidate nearest to name (edit distance, at most a third of it), or NULL. */
const char *cli_nearest(const char *name, const char *const *candidates, size_t count);

/* "unknown command 'shwo': did you mean 'show'?"; where none is near, the sentence that says where
 * they are listed. CLI_USAGE. */
int cli_unknown(const char *command, const char *what, const char *name,
                const char *const *candidates, size_t count, const char *list);

enum { CLI_COMMANDS = 16 };

struct cli_commands {
    const char *command; /* whose they are; NULL: the program's */
    const struct cli_command *rows;
    size_t count;
    void (*print_rest)(FILE *out); /* what the help says below them */
};

/* Runs the one that argv[1] names; lists them where it names none, or asks for help. */
int cli_run(const struct cli_commands *commands, int argc, char **argv);

/* Whole decimal number within [low, high]; 0 or -EINVAL, *value untouched on failure. */
int cli_parse_long(const char *text, long low, long high, long *value);

/* Bytes up to 2^40, as 4096, 4K, 4KiB, 1M or 1G; 0 or -EINVAL, *bytes untouched on failure. */
int cli_parse_bytes(const char *text, size_t length, uint64_t *bytes);

/* Behind a noun of so many. */
static inline const char *cli_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Columns of a line: COLUMNS, or the terminal's, or 80. */
int cli_width(void);

/* left, then text from column indent on, wrapped at cli_width(). */
void cli_print_help(FILE *out, const char *left, int indent, const char *text);

#endif
