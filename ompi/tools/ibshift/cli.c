#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *cli_program = "ibshift";
bool cli_is_mute;

void cli_say(const char *command, const char *format, va_list args)
{
    char text[8192];

    vsnprintf(text, sizeof(text), format, args);
    for (char *c = text; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    }
    if (!cli_is_mute) {
        fprintf(stderr, "%s%s%s: %s\n", cli_program, command != NULL ? " " : "",
                command != NULL ? command : "", text);
    }
}

int cli_error(const char *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_say(command, format, args);
    va_end(args);
    return CLI_USAGE;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Two letters that changed places are one difference. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t width = strlen(b);
    size_t rows[3][64];

    if (width >= 64) {
        return 64;
    }
    for (size_t j = 0; j <= width; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1;; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

        if (a[i - 1] == '\0') {
            return above[width];
        }
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            row[j] = min3(row[j - 1] + 1, above[j] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = min3(row[j], row[j], before[j - 2] + 1);
            }
        }
    }
}

/* At most a third of the letters differ, or it is another word. */
const char *cli_nearest(const char *name, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    size_t best_distance = strlen(name + strspn(name, "-")) / 3 + 1;

    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(name, candidates[i]);

        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}

int cli_unknown(const char *command, const char *what, const char *name,
                const char *const *candidates, size_t count, const char *list)
{
    const char *nearest = cli_nearest(name, candidates, count);

    return nearest != NULL
               ? cli_error(command, "%s '%.40s': did you mean '%s'?", what, name, nearest)
               : cli_error(command, "%s '%.40s'; %s", what, name, list);
}

static void list_commands(const struct cli_commands *c, FILE *out)
{
    fprintf(out, "usage: ibshift%s%s COMMAND [ARGUMENT...]\n\n", c->command != NULL ? " " : "",
            c->command != NULL ? c->command : "");
    for (size_t i = 0; i < c->count; i++) {
        fprintf(out, "  %-9s %s\n", c->rows[i].name, c->rows[i].summary);
    }
    fputc('\n', out);
    c->print_rest(out);
}

int cli_run(const struct cli_commands *c, int argc, char **argv)
{
    const char *names[CLI_COMMANDS];
    char list[64];

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        list_commands(c, argc < 2 ? stderr : stdout);
        return argc < 2 ? CLI_USAGE : CLI_OK;
    }
    for (size_t i = 0; i < c->count; i++) {
        names[i] = c->rows[i].name;
        if (strcmp(argv[1], names[i]) == 0) {
            return c->rows[i].run(argc - 1, argv + 1);
        }
    }
    snprintf(list, sizeof(list), "ibshift%s%s --help lists them", c->command != NULL ? " " : "",
             c->command != NULL ? c->command : "");
    return cli_unknown(c->command, "unknown command", argv[1], names, c->count, list);
}

int cli_parse_long(const char *text, long low, long high, long *value)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < low || number > high) {
        return -EINVAL;
    }
    *value = number;
    return 0;
}

int cli_parse_bytes(const char *text, size_t length, uint64_t *bytes)
{
    static const char *const units[] = {"", "B", "K", "KiB", "M", "MiB", "G", "GiB"};
    uint64_t number = 0;
    size_t digits = 0;

    for (; digits < length && digits < 13 && text[digits] >= '0' && text[digits] <= '9'; digits++) {
        number = 10 * number + (uint64_t)(text[digits] - '0');
    }
    for (size_t i = 0; digits > 0 && i < sizeof(units) / sizeof(units[0]); i++) {
        unsigned shift = (unsigned)i / 2 * 10;

        if (strlen(units[i]) == length - digits &&
            memcmp(units[i], text + digits, length - digits) == 0 &&
            number <= UINT64_C(1) << 40 >> shift) {
            *bytes = number << shift;
            return 0;
        }
    }
    return -EINVAL;
}

int cli_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    long width;

    if (columns != NULL && cli_parse_long(columns, 40, 10000, &width) == 0) {
        return (int)width;
    }
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40 ? size.ws_col : 80;
}

void cli_print_help(FILE *out, const char *left, int indent, const char *text)
{
    int width = cli_width(), at = fprintf(out, "%-*s", indent, left);
    bool is_first = true;

    if (indent > 0 && (int)strlen(left) >= indent) { /* it fills its column, or more */
        at += fprintf(out, " ");
    }
    while (*text != '\0') {
        int length = (int)strcspn(text, " ");

        if (!is_first && at + 1 + length > width) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (!is_first) {
            at += fprintf(out, " ");
        }
        at += fprintf(out, "%.*s", length, text);
        is_first = false;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}
