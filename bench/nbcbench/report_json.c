#include "report.h"

#include "json.h"

static struct json json;

static void open_object(FILE *file, const struct options *o)
{
    (void)o;
    json_begin(&json, file);
    json_open(&json, "metadata", '{');
    metadata_write(file, &json);
    json_close(&json, '}');
    json_open(&json, "results", '[');
}

static void microseconds(const char *name, double value)
{
    json_value(&json, name, "%.3f", value);
}

static void write_timing(const char *name, const struct timing *t, const struct options *o)
{
    char tail[16];

    json_open(&json, name, '{');
    microseconds("median", t->median);
    microseconds("low", t->low);
    microseconds("high", t->high);
    microseconds("p10", t->p10);
    microseconds("p90", t->p90);
    microseconds("min", t->least);
    microseconds("avg", t->average);
    microseconds("max", t->most);
    json_bool(&json, "noisy", t->is_noisy);
    for (int i = 0; i < o->tail_count; i++) {
        snprintf(tail, sizeof(tail), "tail%d", o->tails[i]);
        microseconds(tail, t->tails[i]);
    }
    json_close(&json, '}');
}

static void write_row(FILE *file, const struct bench *b, const struct result *r)
{
    const struct options *o = b->options;

    (void)file;
    json_open(&json, NULL, '{');
    json_text(&json, "collective", b->what->name);
    json_value(&json, "ranks", "%d", b->ranks);
    json_value(&json, "size", "%zu", b->size);
    write_timing(o->persistent ? "persistent" : "blocking", &r->blocking, o);
    if (o->nonblocking) {
        write_timing("nonblocking", &r->nonblocking, o);
        microseconds("compute", r->compute);
        microseconds("overlapped", r->overlapped);
        microseconds("start", r->start);
        microseconds("test", r->test);
        microseconds("wait", r->wait);
        json_value(&json, "overlap_percent", "%.1f", r->overlap_percent);
    }
    if (o->counter != NULL) {
        json_value(&json, "counted", "%.2f", r->counted);
    }
    if (o->verify) {
        json_bool(&json, "right", !r->is_wrong);
    }
    json_close(&json, '}');
}

static void close_object(FILE *file)
{
    (void)file;
    json_close(&json, ']');
    json_end(&json);
}

const struct format_functions format_json = {open_object, NULL, write_row, close_object};
