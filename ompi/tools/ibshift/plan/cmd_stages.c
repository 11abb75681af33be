/* The file of --stages: a line for each rank, on it the ranks that it sends to, stage after stage,
 * '-' where it rests; '#' begins a comment. Who receives from whom follows. */
#include "plan/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MAX = 1 << 24 };

struct reader {
    struct plan_args *args;
    FILE *file;
    char *line;
    size_t room;
    uint32_t number; /* of the line */
    uint32_t rank;   /* whose line it is */
};

static int bad_line(const struct reader *r, const char *what)
{
    return cli_error(r->args->command, "%s:%u: %s", r->args->stages_path, r->number, what);
}

/* The next line that has words, without its comment; false at the end. */
static bool next_line(struct reader *r)
{
    while (getline(&r->line, &r->room, r->file) >= 0) {
        r->number++;
        r->line[strcspn(r->line, "#\r\n")] = '\0';
        if (r->line[strspn(r->line, " \t")] != '\0') {
            return true;
        }
    }
    return false;
}

static uint32_t count_words(const char *text)
{
    uint32_t count = 0;

    for (text += strspn(text, " \t"); *text != '\0'; text += strspn(text, " \t")) {
        text += strcspn(text, " \t");
        count++;
    }
    return count;
}

/* Two arrays of ranks * stages, to and from. */
static int begin_table(struct reader *r)
{
    struct plan_args *args = r->args;
    uint32_t stages = count_words(r->line);
    size_t entries = (size_t)stages * args->plan.ranks;

    if (entries > ENTRIES_MAX) {
        return bad_line(r, "more than 16777216 stages of all ranks together");
    }
    args->stages_memory = malloc(2 * entries * sizeof(uint32_t));
    if (args->stages_memory == NULL) {
        return cli_error(args->command, "out of memory");
    }
    memset(args->stages_memory, 0xff, 2 * entries * sizeof(uint32_t)); /* IBSHIFT_NO_RANK */
    args->stages = (struct ibshift_stages){stages, 0, args->plan.ranks, args->stages_memory,
                                           args->stages_memory + entries};
    return CLI_OK;
}

static int set_entry(struct reader *r, uint32_t stage, const char *word)
{
    uint32_t stages = r->args->stages.stages, *to = r->args->stages_memory,
             *from = to + (size_t)stages * r->args->plan.ranks;
    char what[80];
    long peer;

    if (strcmp(word, "-") == 0) {
        return CLI_OK;
    }
    if (cli_parse_long(word, 0, (long)r->args->plan.ranks - 1, &peer) != 0) {
        snprintf(what, sizeof(what), "'%.20s': must be a rank from 0 to %u, or -", word,
                 r->args->plan.ranks - 1);
        return bad_line(r, what);
    }
    from += (size_t)peer * stages + stage;
    if (*from != IBSHIFT_NO_RANK) {
        snprintf(what, sizeof(what), "stage %u: ranks %u and %u both send to rank %ld", stage,
                 *from, r->rank, peer);
        return bad_line(r, what);
    }
    *from = r->rank;
    to[(size_t)r->rank * stages + stage] = (uint32_t)peer;
    return CLI_OK;
}

static int read_row(struct reader *r)
{
    char *rest = r->line, *word;
    int rc = CLI_OK;

    if (r->rank == r->args->plan.ranks) {
        return bad_line(r, "more lines than ranks");
    }
    if (r->rank == 0) {
        rc = begin_table(r);
    }
    if (rc == CLI_OK && count_words(r->line) != r->args->stages.stages) {
        return bad_line(r, "not as many stages as on the first line");
    }
    for (uint32_t stage = 0; rc == CLI_OK && stage < r->args->stages.stages; stage++) {
        word = strtok_r(rest, " \t", &rest);
        rc = set_entry(r, stage, word);
    }
    r->rank++;
    return rc;
}

static int read_rows(struct reader *r)
{
    char why[160];
    int rc = CLI_OK;

    while (rc == CLI_OK && next_line(r)) {
        rc = read_row(r);
    }
    if (rc == CLI_OK && ferror(r->file)) {
        return cli_error(r->args->command, "cannot read '%s': %s", r->args->stages_path,
                         strerror(errno));
    }
    if (rc == CLI_OK && r->rank < r->args->plan.ranks) {
        return cli_error(r->args->command, "%s: %u lines for %u ranks", r->args->stages_path,
                         r->rank, r->args->plan.ranks);
    }
    if (rc == CLI_OK &&
        ibshift_stages_check(&r->args->stages, r->args->plan.ranks, why, sizeof(why)) != 0) {
        return cli_error(r->args->command, "%s: %s", r->args->stages_path, why);
    }
    return rc;
}

int plan_args_stages(struct plan_args *args)
{
    struct reader reader = {.args = args, .file = fopen(args->stages_path, "r")};
    int rc;

    if (reader.file == NULL) {
        return cli_error(args->command, "cannot open '%s': %s", args->stages_path, strerror(errno));
    }
    rc = read_rows(&reader);
    args->plan.stages = &args->stages;
    free(reader.line);
    fclose(reader.file);
    return rc;
}
