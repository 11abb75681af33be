/* `ibshift sim --jobs`: several jobs at once, each measured beside its own run alone. */
#include "sim/cmd.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/graph/lines.h"

enum {
    NAME_ROOM = 280,
    WAITS_MAX = 1000, /* how often a job may be over before the last one begins */
};

struct member { /* of the crowd */
    struct sim_command c;
    char *line; /* its words; NULL: it was dealt */
    char name[NAME_ROOM];
    uint64_t alone, ideal, beside; /* ps */
    bool exchanges;                /* messages; if not, it has no ratios */
    uint64_t *busy;                /* [port]: ps of its calls alone */
    double shared; /* ps: of the busiest cable that it uses, with one call of each job */
};

struct crowd {
    struct sim_command *c;
    struct member *job;
    uint32_t count, room, hosts; /* jobs; hosts of all jobs */
};

static struct member *add_job(struct crowd *w)
{
    if (w->count == w->room) {
        w->job = sim_grown(w->job, &w->room, sizeof(*w->job));
    }
    w->job[w->count] = (struct member){.line = NULL};
    return &w->job[w->count++];
}

/* ---- which jobs ---- */

static int deal(struct crowd *w)
{
    uint32_t *hosts = NULL, count = 0, at = 0;
    int status = sim_deal(w->c, &hosts, &count);

    for (uint32_t j = 0; status == CLI_OK && j < w->c->jobs; j++) {
        uint32_t end = (uint32_t)((uint64_t)count * (j + 1) / w->c->jobs);
        struct member *m = add_job(w);

        m->c = *w->c;
        m->c.job = (struct fabric_job){.leaders = w->c->job.leaders,
                                       .segments = w->c->job.segments,
                                       .lid_offset = w->c->job.lid_offset,
                                       .has_rails = w->c->job.has_rails};
        m->c.shift = (struct ibshift_order){.rank_at = NULL};
        fabric_job_beside(&m->c.args, &m->c.job, &w->c->job, hosts + at, end - at);
        at = end;
    }
    free(hosts);
    return status;
}

/* Of what may go to a terminal. */
static bool is_text(const char *line, ssize_t length)
{
    for (ssize_t i = 0; i < length; i++) {
        if (iscntrl((unsigned char)line[i]) && !isspace((unsigned char)line[i])) {
            return false;
        }
    }
    return true;
}

static int take_line(struct crowd *w, const char *path, unsigned number, char *line)
{
    struct member *m = add_job(w);
    int status;

    m->line = line;
    snprintf(m->name, sizeof(m->name), "sim: %.200s:%u", path, number);
    status = sim_options_line(&m->c, m->name, line);
    status = status == CLI_OK ? sim_peer_check(&m->c) : status;
    if (status == CLI_OK) {
        fabric_job_check(&m->c.args, &m->c.job, m->c.plan);
        fabric_job_beside(&m->c.args, &m->c.job, &w->c->job, NULL, 0);
    }
    return status;
}

static int read_lines(struct crowd *w, FILE *file, const char *path)
{
    int status = CLI_OK;

    for (unsigned number = 1; status == CLI_OK; number++) {
        char *line = NULL;
        size_t room = 0;
        ssize_t length = getline(&line, &room, file);
        const char *begin = length < 0 ? "" : line + strspn(line, " \t\r\n");

        if (length > 0 &&
            (!is_text(line, length) || (*begin != '-' && *begin != '#' && *begin != '\0'))) {
            status =
                cli_error(w->c->args.command,
                          "--jobs %.200s:%u: wants a job's options, as --hosts nodes:node[001-016]",
                          path, number);
        } else if (length > 0 && *begin == '-') {
            status = w->count < SIM_JOBS_MAX
                         ? take_line(w, path, number, line)
                         : cli_error(w->c->args.command, "%.200s: more than %d jobs", path,
                                     SIM_JOBS_MAX);
            continue; /* the words are in the line */
        }
        free(line);
        if (length < 0) {
            break;
        }
    }
    return status;
}

static int read_file(struct crowd *w)
{
    const char *path = w->c->jobs_file, *command = w->c->args.command;
    struct ibshift_error err;
    FILE *file = ibshift_lines_file(strcmp(path, "-") == 0 ? "/dev/stdin" : path, &err);
    int status;

    if (file == NULL) {
        return cli_error(command, "--jobs: %.300s: wants a file or a number", err.text);
    }
    status = read_lines(w, file, path);
    fclose(file);
    return status == CLI_OK && w->count == 0
               ? cli_error(command, "--jobs %.200s: no line with a job", path)
               : status;
}

/* Names stay where they are only when there are no more lines. */
static void set_names(struct crowd *w)
{
    for (uint32_t j = 0; j < w->count; j++) {
        struct member *m = &w->job[j];

        m->c.args.command = m->line != NULL ? m->name : w->c->args.command;
        memcpy(m->c.args.positional, w->c->args.positional, sizeof(m->c.args.positional));
    }
}

static int check_hosts(struct crowd *w)
{
    const struct ibshift_fabric *f = w->c->job.fabric;
    uint32_t *owner = sim_zeroed(f->host_count, sizeof(*owner)); /* job + 1 */
    int status = CLI_OK;

    for (uint32_t j = 0; status == CLI_OK && j < w->count; j++) {
        const struct ibshift_placement *p = w->job[j].c.job.placement;

        for (uint32_t m = 0; status == CLI_OK && m < p->hosts; m++) {
            uint32_t *other = &owner[p->host[m]];

            if (*other != 0) {
                status = cli_error(w->job[j].c.args.command,
                                   "host '%s' is that of another job, too (%s): a host has one",
                                   ibshift_host_name(f, p->host[m]),
                                   w->job[*other - 1].name + strlen("sim: "));
            }
            *other = j + 1;
        }
        w->hosts += p->hosts;
    }
    free(owner);
    return status;
}

/* ---- their runs ---- */

static int prepare(struct crowd *w)
{
    int status = CLI_OK;

    for (uint32_t j = 0; status == CLI_OK && j < w->count; j++) {
        struct sim_command *c = &w->job[j].c;

        status = sim_take_sizes(c);
        status = status == CLI_OK ? sim_choose(c) : status;
        status = status == CLI_OK ? sim_prepare(c) : status;
        c->world.progress = NULL;
        c->world.net = w->job[0].c.world.net; /* the first job's messages are the unit of time */
        c->world.fabric.lane_table = w->c->lane_table;
        c->world.fabric.sl2vl = w->c->fabric.sl2vl;
    }
    return status;
}

/* The run, of which `who` is said to fail. CLI_OK: its jobs have ended. */
static int run(struct sim_command *who, const struct sim_run_params *world,
               const struct sim_job_params *jobs, uint32_t count)
{
    struct ibshift_error err;

    if (sim_run_open(&who->run, world, jobs, count, &err) != 0) {
        return fabric_args_fail(&who->args, &err);
    }
    sim_run_go(&who->run);
    sim_failure_print(who);
    return who->run.status == 0 ? CLI_OK : CLI_FAILED;
}

static int run_alone(struct member *m)
{
    int status = run(&m->c, &m->c.world, &m->c.task, 1);

    if (status == CLI_OK) {
        uint32_t ports = m->c.job.fabric->port_count;

        m->alone = m->c.run.job[0].time;
        m->exchanges = m->alone > 0 && m->c.run.net->stats.messages > 0;
        m->busy = sim_zeroed(ports, sizeof(*m->busy));
        for (uint32_t i = 0; i < ports; i++) {
            m->busy[i] = m->c.run.fabric->ports[i].busy[false];
        }
    }
    status = status == CLI_OK ? sim_ideal_find(&m->c) : status;
    m->ideal = m->c.ideal;
    sim_run_close(&m->c.run);
    return status;
}

/* What the routes let them share. */
static void find_shared(struct crowd *w)
{
    for (uint32_t i = 0; i < w->c->job.fabric->port_count; i++) {
        double all = 0;

        for (uint32_t j = 0; j < w->count; j++) {
            all += (double)w->job[j].busy[i] / w->job[j].c.calls;
        }
        for (uint32_t j = 0; j < w->count; j++) {
            struct member *m = &w->job[j];
            double shared = m->busy[i] > 0 ? all * m->c.calls : 0;

            m->shared = shared > m->shared ? shared : m->shared;
        }
    }
}

/* Jobs go on until the last one has ended: before it begins not for ever. */
static int check_starts(const struct crowd *w)
{
    const struct member *last = &w->job[0];

    for (uint32_t j = 1; j < w->count; j++) {
        last = w->job[j].c.task.start > last->c.task.start ? &w->job[j] : last;
    }
    for (uint32_t j = 0; j < w->count; j++) {
        const struct member *m = &w->job[j];

        if (m->exchanges && (last->c.task.start - m->c.task.start) / m->alone >= WAITS_MAX) {
            return cli_error(
                last->c.args.command,
                "--start %.9g: more than %d times as late as job %u takes, %.3f us: start it "
                "earlier, or give that job more --calls",
                last->c.start, WAITS_MAX, j + 1, (double)m->alone / 1e6);
        }
    }
    return CLI_OK;
}

static int run_together(struct crowd *w)
{
    struct sim_job_params *jobs = sim_zeroed(w->count, sizeof(*jobs));
    struct sim_run_params world = w->job[0].c.world;
    int status;

    world.limit = 0;
    for (uint32_t j = 0; j < w->count; j++) {
        jobs[j] = w->job[j].c.task;
        if (__builtin_add_overflow(world.limit, w->job[j].c.world.limit, &world.limit)) {
            world.limit = UINT64_MAX;
        }
    }
    status = run(w->c, &world, jobs, w->count);
    for (uint32_t j = 0; status == CLI_OK && j < w->count; j++) {
        w->job[j].beside = w->c->run.job[j].time;
    }
    sim_run_close(&w->c->run);
    free(jobs);
    return status;
}

static int run_all(struct crowd *w)
{
    int status = CLI_OK;

    w->c->world.progress = !w->c->quiet && isatty(STDERR_FILENO) ? sim_progress_show : NULL;
    for (uint32_t j = 0; status == CLI_OK && j < w->count; j++) {
        if (w->c->world.progress != NULL) {
            sim_progress_show(w->c, (double)j / (2.0 * w->count));
        }
        status = run_alone(&w->job[j]);
    }
    status = status == CLI_OK ? check_starts(w) : status;
    if (status == CLI_OK) {
        find_shared(w);
        status = run_together(w);
    }
    sim_progress_clear(w->c);
    return status;
}

/* ---- what is said: ratios are NAN where a job exchanges nothing ---- */

static double ratio(double time, uint64_t to)
{
    return to > 0 ? time / (double)to : NAN;
}

static double beside_alone(const struct member *m)
{
    return m->exchanges ? ratio((double)m->beside, m->alone) : NAN;
}

static double over_ideal(const struct member *m)
{
    return ratio((double)m->alone, m->ideal);
}

static double shared_ideal(const struct member *m)
{
    return ratio(m->shared, m->ideal);
}

/* Of beside over alone. */
static double mean_of(const struct crowd *w, double *worst)
{
    double sum = 0;
    uint32_t count = 0;

    *worst = NAN;
    for (uint32_t j = 0; j < w->count; j++) {
        double one = beside_alone(&w->job[j]);

        if (!isnan(one)) {
            sum += one;
            count++;
            *worst = fmax(one, *worst);
        }
    }
    return count > 0 ? sum / count : NAN;
}

struct ratio_text {
    char text[32];
};

static struct ratio_text ratio_text(double value, int digits, const char *none)
{
    struct ratio_text t;

    if (isnan(value)) {
        snprintf(t.text, sizeof(t.text), "%s", none);
    } else {
        snprintf(t.text, sizeof(t.text), "%.*f", digits, value);
    }
    return t;
}

static void json_ratio(struct json *j, const char *name, double value)
{
    json_value(j, name, "%s", ratio_text(value, 4, "null").text);
}

static void print_text(const struct crowd *w)
{
    double worst, mean = mean_of(w, &worst);

    printf("%u job%s on %u of %u hosts\n", w->count, cli_plural(w->count), w->hosts,
           w->c->job.fabric->host_count);
    puts("job  ranks  hosts     alone us    beside us  beside/alone  shared/ideal  alone/ideal  "
         "what");
    for (uint32_t j = 0; j < w->count; j++) {
        const struct member *m = &w->job[j];

        printf("%3u %6u %6u %12.3f %12.3f %13s %13s %12s  %s; %s\n", j + 1,
               m->c.job.placement->ranks, m->c.job.placement->hosts, (double)m->alone / 1e6,
               (double)m->beside / 1e6, ratio_text(beside_alone(m), 3, "-").text,
               ratio_text(shared_ideal(m), 3, "-").text, ratio_text(over_ideal(m), 3, "-").text,
               m->c.title, m->c.pace_text);
    }
    printf("beside/alone: %s at worst, %s on average\n", ratio_text(worst, 3, "-").text,
           ratio_text(mean, 3, "-").text);
}

static void print_json(const struct crowd *w)
{
    double worst, mean = mean_of(w, &worst);
    struct json j;

    json_begin(&j, stdout);
    json_value(&j, "fabric_hosts", "%u", w->c->job.fabric->host_count);
    json_value(&j, "hosts", "%u", w->hosts);
    json_value(&j, "seed", "%.0f", w->c->seed);
    json_ratio(&j, "worst", worst);
    json_ratio(&j, "mean", mean);
    json_open(&j, "jobs", '[');
    for (uint32_t i = 0; i < w->count; i++) {
        const struct member *m = &w->job[i];

        json_open(&j, NULL, '{');
        json_value(&j, "ranks", "%u", m->c.job.placement->ranks);
        json_value(&j, "hosts", "%u", m->c.job.placement->hosts);
        json_text(&j, "what", m->c.title);
        json_text(&j, "pace", m->c.pace_text);
        json_value(&j, "bytes", "%.0f", m->c.size);
        json_value(&j, "start", "%.9g", (double)m->c.task.start / 1e12);
        json_value(&j, "calls", "%u", m->c.calls);
        json_value(&j, "ideal", "%.9g", (double)m->ideal / 1e12);
        json_value(&j, "alone", "%.9g", (double)m->alone / 1e12);
        json_value(&j, "beside", "%.9g", (double)m->beside / 1e12);
        json_ratio(&j, "beside_over_alone", beside_alone(m));
        json_ratio(&j, "shared_over_bound", shared_ideal(m));
        json_ratio(&j, "alone_over_bound", over_ideal(m));
        json_open(&j, "nodes", '[');
        for (uint32_t k = 0; k < m->c.job.placement->hosts; k++) {
            uint32_t host = m->c.job.placement->host[k];

            json_text(&j, NULL, ibshift_host_name(m->c.job.fabric, host));
        }
        json_close(&j, ']');
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

static void close_jobs(struct crowd *w)
{
    for (uint32_t j = 0; j < w->count; j++) {
        sim_choice_free(&w->job[j].c);
        fabric_job_close(&w->job[j].c.job);
        free(w->job[j].line);
        free(w->job[j].busy);
    }
    free(w->job);
}

int sim_crowd(struct sim_command *c)
{
    struct crowd w = {.c = c};
    int status;

    if (c->svg != NULL) {
        return cli_error(c->args.command, "--jobs takes no --svg");
    }
    if (c->jobs_file != NULL && c->job.hosts != NULL) {
        return cli_error(c->args.command, "--hosts and --jobs FILE: each line has its own hosts");
    }
    status = c->jobs_file != NULL ? read_file(&w) : deal(&w);
    set_names(&w);
    status = status == CLI_OK ? check_hosts(&w) : status;
    status = status == CLI_OK ? prepare(&w) : status;
    status = status == CLI_OK ? run_all(&w) : status;
    if (status == CLI_OK) {
        (c->json ? print_json : print_text)(&w);
    }
    close_jobs(&w);
    return status;
}
