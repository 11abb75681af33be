/* `ibshift info`: what is installed here and what a process started here would use; and the lines in which it and
 * `ibshift doctor` say what they find. */
#include "info/cmd.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "choose/param.h"
#include "fabric/read/compiled.h"
#include "json.h"
#include "options.h"
#include "pool.h"

/* One line each, whatever bytes a device's texts have. */
void info_say(struct info *info, enum info_verdict verdict, const char *name, const char *format,
              ...)
{
    struct info_line *line = &info->lines[info->line_count];
    va_list args;

    if (info->line_count == INFO_LINES) {
        return;
    }
    info->line_count++;
    line->verdict = verdict;
    snprintf(line->name, sizeof(line->name), "%s", name);
    va_start(args, format);
    vsnprintf(line->text, sizeof(line->text), format, args);
    va_end(args);
    for (char *c = line->text; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' ? '?' : *c;
    }
}

bool info_has_bad(const struct info *info)
{
    for (int i = 0; i < info->line_count; i++) {
        if (info->lines[i].verdict == INFO_BAD) {
            return true;
        }
    }
    return false;
}

void info_print(const struct info *info, bool is_json)
{
    static const struct {
        char mark;
        const char *word;
    } verdicts[] = {
        [INFO_FACT] = {' ', "fact"}, [INFO_NOTE] = {'*', "note"}, [INFO_BAD] = {'!', "bad"}};
    struct json j;

    if (is_json) {
        json_begin(&j, stdout);
        json_text(&j, "version", IBSHIFT_VERSION);
        json_open(&j, "lines", '[');
    }
    for (int i = 0; i < info->line_count; i++) {
        const struct info_line *line = &info->lines[i];

        if (is_json) {
            json_open(&j, NULL, '{');
            json_text(&j, "name", line->name);
            json_text(&j, "verdict", verdicts[line->verdict].word);
            json_text(&j, "text", line->text);
            json_close(&j, '}');
        } else {
            printf("%c %-16s %s\n", verdicts[line->verdict].mark, line->name, line->text);
        }
    }
    if (is_json) {
        json_close(&j, ']');
        json_end(&j);
    } else {
        puts("* costs something    ! keeps ibshift from running natively between hosts");
    }
}

void info_say_component(struct info *info)
{
    const struct info_component *c = &info->component;

    if (c->program[0] == '\0') {
        info_say(info, INFO_BAD, "component", "left out: built without Open MPI");
    } else if (!c->is_found) {
        info_say(info, INFO_BAD, "component",
                 "Open MPI %s does not find it in %s%s: run make install; %s --param coll ibshift "
                 "says what it finds",
                 c->release, c->folder, c->is_file ? "" : ", where it is not", c->program);
    } else if (c->needs_path) {
        info_say(
            info, INFO_FACT, "component",
            "in %s; Open MPI %s finds it with ibshift-run, or with --mca mca_base_component_path "
            "%s:SYS_DEFAULT:USER_DEFAULT",
            c->folder, c->release, c->folder);
    } else {
        info_say(info, INFO_FACT, "component", "in %s, where Open MPI %s finds it", c->folder,
                 c->release);
    }
}

void info_say_ports(struct info *info, bool all)
{
    const struct info_devices *devices = &info->devices;
    char name[80], used[200];

    for (int i = 0; i < devices->count; i++) {
        const struct info_port *port = &devices->ports[i];

        if (!all && port->place == 0) {
            continue;
        }
        snprintf(name, sizeof(name), "%s:%u", port->device, port->number);
        snprintf(used, sizeof(used), "; used: LID %u, LMC %u, MTU %u, GID %u %s", port->lid,
                 port->lmc, port->mtu, port->gid_index, port->gid);
        info_say(info, INFO_FACT, name, "%s, %s, %.5g Gb/s, distance %u%s",
                 port->is_ethernet ? "Ethernet" : "InfiniBand", port->is_active ? "active" : "down",
                 port->rate / 1000.0, port->distance, port->place > 0 ? used : "");
    }
    if (devices->why[0] != '\0') {
        info_say(info, INFO_BAD, "port", "none used: %s", devices->why);
    }
}

/* An InfiniBand GID ends in the GUID of its port. */
static uint64_t guid_of(const struct info_port *port)
{
    struct in6_addr gid;
    uint64_t guid = 0;

    if (port->is_ethernet || inet_pton(AF_INET6, port->gid, &gid) != 1) {
        return 0;
    }
    for (int i = 8; i < 16; i++) {
        guid = guid << 8 | gid.s6_addr[i];
    }
    return guid;
}

static void find_host(struct info *info, const struct ibshift_fabric *f)
{
    for (int i = 0; i < info->devices.count; i++) {
        const struct info_port *port = &info->devices.ports[i];
        uint64_t guid = port->place == 1 ? guid_of(port) : 0;
        uint32_t n = guid != 0 ? ibshift_fabric_find_guid(f, guid) : IBSHIFT_NO_NODE;

        if (n == IBSHIFT_NO_NODE) {
            continue;
        }
        snprintf(info->host, sizeof(info->host), "%s", ibshift_node_name(f, n));
        for (uint32_t p = 0; p < f->nodes[n].port_count; p++) {
            const struct ibshift_port *in_file = &f->ports[f->nodes[n].first_port + p];

            if (in_file->guid == guid) {
                info->host_lid = in_file->lid;
                info->host_lid_now = in_file->lid != 0 ? port->lid : 0;
            }
        }
    }
}

static bool read_fabric(struct info *info, char *shape, size_t size)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err;

    if (ibshift_compiled_read(info->fabric, &f, &err) != 0) {
        info_say(info, INFO_NOTE, "fabric",
                 "%s: is coll_ibshift_fabric right? ibshift fabric publish writes such files",
                 err.text);
        return false;
    }
    snprintf(shape, size, "%u hosts, %u switches%s", f->host_count, f->switch_count,
             f->is_adaptive       ? ", routed adaptively: all-to-alls go host by host"
             : f->order_count > 0 ? ", with a routing order"
                                  : "");
    find_host(info, f);
    ibshift_fabric_free(f);
    return true;
}

/* A node knows its own port; whether routes hold is asked of the subnet manager's host. */
bool info_say_fabric(struct info *info)
{
    char shape[160];

    if (info->fabric[0] == '\0') {
        info_say(info, INFO_FACT, "fabric",
                 "no file (coll_ibshift_fabric): all-to-alls go in rank order");
        return true;
    }
    if (!read_fabric(info, shape, sizeof(shape))) {
        return false;
    }
    if (info->host[0] == '\0') {
        info_say(info, INFO_NOTE, "fabric",
                 "%s: %s; this machine's port is not in it: run ibshift fabric publish",
                 info->fabric, shape);
    } else if (info->host_lid_now != 0 && info->host_lid_now != info->host_lid) {
        info_say(info, INFO_NOTE, "fabric",
                 "%s: %s; stale: this machine's port has LID %u, and LID %u in it: run ibshift "
                 "fabric publish",
                 info->fabric, shape, info->host_lid_now, info->host_lid);
    } else {
        info_say(info, INFO_FACT, "fabric",
                 "%s: %s; this machine is \"%s\" at LID %u; to check its routes: ibshift fabric "
                 "publish --check",
                 info->fabric, shape, info->host, info->host_lid);
    }
    return true;
}

static bool say_model(struct info *info)
{
    struct ibshift_model model =
        info->devices.is_software ? ibshift_model_software : ibshift_model_typical;
    char error[IBSHIFT_TEXT_ERROR];
    bool is_given = info->model[0] != '\0', is_read;

    is_read = !is_given || ibshift_model_read(info->model, &model, error) == 0;
    if (!is_read) {
        info_say(info, INFO_NOTE, "cost model", "%s; a job uses the typical values", error);
    }
    info_say(info, INFO_FACT, "cost model",
             "%s: L %g us, o_s %g to %g us, o_r %g to %g us, g %g us after %d messages, G %g ns/B, "
             "O %g ns/B, "
             "E %g ns/B, w %g us, R %g us, copy %g ns/B, reduce %g ns/B",
             is_given && is_read         ? info->model
             : info->devices.is_software ? "typical of a device in software, not measured here"
                                         : "typical values, not measured here",
             model.latency, model.send_max, model.send_min, model.recv_max, model.recv_min,
             model.gap, model.free_messages, model.gap_byte * 1e3, model.send_byte * 1e3,
             model.eager_byte * 1e3, model.wake, model.granted, model.copy_byte * 1e3,
             model.reduce_byte * 1e3);
    return is_read;
}

/* All, or those that somebody has set. */
static void say_params(struct info *info, bool all)
{
    for (int i = 0; i < info->component.count; i++) {
        const struct info_param *param = &info->component.params[i];

        if (all || param->source == NULL || strcmp(param->source, "default") != 0) {
            info_say(info, INFO_FACT, "parameter", "%s = %s  (%s)", param->name,
                     param->value != NULL ? param->value : "",
                     param->source != NULL ? param->source : "source not known");
        }
    }
}

int cmd_info(int argc, char **argv)
{
    const char *model = NULL, *fabric = NULL;
    bool json = false, all = false, is_read;
    const struct cli_option options[] = {
        {"--model", 0, CLI_TEXT, "FILE",
         "the model's parameters (default: those of coll_ibshift_model)", .where = &model},
        {"--fabric", 0, CLI_TEXT, "FILE",
         "the compiled fabric (default: that of coll_ibshift_fabric)", .where = &fabric},
        {"--all", 0, CLI_FLAG, NULL, "all parameters, not only those that are set", .where = &all},
        cli_json_option(&json),
        {.name = NULL},
    };
    struct cli_args args = {.command = "info", .usage = "", .options = options};
    int rc = cli_parse(&args, argc, argv);
    struct pool pool = {NULL};
    struct info *info;

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    info = pool_new(&pool, 1, sizeof(*info));
    info_machine(info);
    info->model = model != NULL ? model : info->model;
    info->fabric = fabric != NULL ? fabric : info->fabric;
    info_say(info, INFO_FACT, "ibshift", "%s", IBSHIFT_VERSION);
    info_say_component(info);
    info_say_ports(info, true);
    is_read = info_say_fabric(info);
    is_read = say_model(info) && is_read;
    say_params(info, all);
    info_print(info, json);
    info_free(info);
    pool_free(&pool);
    return is_read ? CLI_OK : CLI_USAGE;
}
