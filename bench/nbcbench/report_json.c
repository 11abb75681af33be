#include "report.h"

static bool is_first;

void json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            fprintf(file, "\\%c", *p);
        } else if ((unsigned char)*p < 0x20) {
            fprintf(file, "\\u%04x", (unsigned int)(unsigned char)*p);
        } else {
            fputc(*p, file);
        }
    }
    fputc('"', file);
}

static void open_object(FILE *file, const struct options *o)
{
    (void)o;
    is_first = true;
    fputs("{\"layout\": 1,\n \"metadata\": ", file);
    metadata_write(file, true);
    fputs(",\n \"results\": [", file);
}

static void write_timing(FILE *file, const char *name, const struct timing *t,
                         const struct options *o)
{
    fprintf(
        file,
        ", \"%s\": {\"median\": %.3f, \"low\": %.3f, \"high\": %.3f, \"p10\": %.3f, \"p90\": %.3f, "
        "\"min\": %.3f, \"avg\": %.3f, \"max\": %.3f, \"noisy\": %s",
        name, t->median, t->low, t->high, t->p10, t->p90, t->least, t->average, t->most,
        t->is_noisy ? "true" : "false");
    for (int i = 0; i < o->tail_count; i++) {
        fprintf(file, ", \"tail%d\": %.3f", o->tails[i], t->tails[i]);
    }
    fputc('}', file);
}

static void write_row(FILE *file, const struct bench *b, const struct result *r)
{
    const struct options *o = b->options;

    fprintf(file, "%s\n  {\"collective\": \"%s\", \"ranks\": %d, \"size\": %zu",
            is_first ? "" : ",", b->what->name, b->ranks, b->size);
    is_first = false;
    write_timing(file, o->persistent ? "persistent" : "blocking", &r->blocking, o);
    if (o->nonblocking) {
        write_timing(file, "nonblocking", &r->nonblocking, o);
        fprintf(file,
                ", \"compute\": %.3f, \"overlapped\": %.3f, \"start\": %.3f, \"test\": %.3f, "
                "\"wait\": %.3f, "
                "\"overlap_percent\": %.1f",
                r->compute, r->overlapped, r->start, r->test, r->wait, r->overlap_percent);
    }
    if (o->counter != NULL) {
        fprintf(file, ", \"counted\": %.2f", r->counted);
    }
    if (o->verify) {
        fprintf(file, ", \"right\": %s", r->is_wrong ? "false" : "true");
    }
    fputc('}', file);
}

static void close_object(FILE *file)
{
    fputs("]}\n", file);
}

const struct format_functions format_json = {open_object, NULL, write_row, close_object};
