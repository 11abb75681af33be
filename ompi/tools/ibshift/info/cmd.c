/* `ibshift info`: what is installed here and what a process started here would use, in its two
 * forms. */
#include "info/cmd.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "choose/param.h"
#include "fabric/read/compiled.h"
#include "json.h"
#include "options.h"
#include "pool.h"

static void print_component(const struct info_component *c, FILE *out)
{
    fprintf(out, "ibshift %s\n", IBSHIFT_VERSION);
    if (c->program[0] == '\0') {
        fputs("  component    left out: built without Open MPI\n", out);
        return;
    }
    fprintf(out, "  built for    Open MPI %s\n", c->release);
    fprintf(out, "  component    %s/mca_coll_ibshift.so%s\n", c->folder,
            c->is_file ? "" : ": not there");
    if (!c->is_found) {
        fprintf(out, "  Open MPI     does not find it (%s --param coll ibshift)\n", c->program);
    } else if (c->needs_path) {
        fprintf(out,
                "  Open MPI     finds it with --mca mca_base_component_path "
                "%s:SYS_DEFAULT:USER_DEFAULT\n",
                c->folder);
    } else {
        fputs("  Open MPI     finds it\n", out);
    }
}

static void print_port(const struct info_port *port, FILE *out)
{
    char name[80];

    snprintf(name, sizeof(name), "%s:%u", port->device, port->number);
    fprintf(out, "  %-16s %-10s %-6s %6.5g Gb/s  distance %u", name,
            port->is_ethernet ? "Ethernet" : "InfiniBand", port->is_active ? "active" : "down",
            port->rate / 1000.0, port->distance);
    if (port->place > 0) {
        fprintf(out, "  used: LID %u, LMC %u, MTU %u, GID %u %s", port->lid, port->lmc, port->mtu,
                port->gid_index, port->gid);
    }
    fputc('\n', out);
}

static void print_devices(const struct info_devices *devices, FILE *out)
{
    fputs("Ports of this machine, and those that a process started here would use\n", out);
    for (int i = 0; i < devices->count; i++) {
        print_port(&devices->ports[i], out);
    }
    if (devices->why[0] != '\0') {
        fprintf(out, "  none used: %s\n", devices->why);
    }
}

static void print_model(const struct info *info, FILE *out)
{
    fprintf(out, "Cost model: %s\n",
            info->model[0] != '\0' ? info->model
            : info->devices.is_software
                ? "typical values of a device in software, not measured here"
                : "typical values, not measured here");
    if (info->model_error[0] != '\0') {
        fprintf(out, "  %s\n  a job uses the typical values:\n", info->model_error);
    }
    fprintf(out, "  %s\n", info->model_text);
}

/* A port in the file, with its LID, is all that a node knows by itself. */
static const char *fabric_misfit(const struct info *info, char *text, size_t size)
{
    if (info->fabric_error[0] != '\0') {
        snprintf(text, size, "%s", info->fabric_error);
    } else if (info->host[0] == '\0') {
        snprintf(text, size, "this machine's port is not in it");
    } else if (info->host_lid_now != 0 && info->host_lid_now != info->host_lid) {
        snprintf(text, size, "stale: this machine's port has LID %u, and LID %u in it",
                 info->host_lid_now, info->host_lid);
    } else {
        return NULL;
    }
    return text;
}

static void print_fabric(const struct info *info, FILE *out)
{
    char text[INFO_TEXT];

    if (info->fabric[0] == '\0') {
        fputs("Fabric: no file; all-to-alls go in rank order\n", out);
        return;
    }
    fprintf(out, "Fabric: %s\n", info->fabric);
    if (info->fabric_error[0] != '\0') {
        fprintf(out, "  %s\n", info->fabric_error);
        return;
    }
    fprintf(out, "  %u hosts, %u switches%s\n", info->fabric_hosts, info->fabric_switches,
            info->is_adaptive        ? ", routed adaptively: all-to-alls go host by host"
            : info->fabric_order > 0 ? ", with a routing order"
                                     : "");
    if (info->host[0] != '\0') {
        fprintf(out, "  this machine is \"%s\"\n", info->host);
    }
    if (fabric_misfit(info, text, sizeof(text)) != NULL) {
        fprintf(out, "  %s\n", text);
    }
}

/* All, or those that somebody has set. */
static void print_params(const struct info_component *c, bool all, FILE *out)
{
    int shown = 0;

    fprintf(out, "Parameters%s\n", all ? "" : " that are set (--all: all of them)");
    for (int i = 0; i < c->count; i++) {
        const struct info_param *param = &c->params[i];
        bool is_empty = param->value == NULL || param->value[0] == '\0';

        if (all || param->source == NULL || strcmp(param->source, "default") != 0) {
            fprintf(out, "  %s = %s  (%s)\n", param->name, is_empty ? "empty" : param->value,
                    param->source != NULL ? param->source : "source not known");
            shown++;
        }
    }
    if (shown == 0) {
        fputs(c->is_found ? "  none\n" : "  not known without the component\n", out);
    }
}

static void print_text(const struct info *info, bool all, FILE *out)
{
    print_component(&info->component, out);
    print_devices(&info->devices, out);
    print_fabric(info, out);
    print_model(info, out);
    print_params(&info->component, all, out);
}

static void member(struct json *j, const char *name, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        json_value(j, name, "null");
    } else {
        json_text(j, name, text);
    }
}

static void port_json(const struct info_port *port, struct json *j)
{
    json_open(j, NULL, '{');
    json_text(j, "device", port->device);
    json_value(j, "port", "%u", port->number);
    json_bool(j, "ethernet", port->is_ethernet);
    json_bool(j, "active", port->is_active);
    json_value(j, "mbps", "%u", port->rate);
    json_value(j, "distance", "%u", port->distance);
    json_value(j, "used", "%u", port->place);
    if (port->place > 0) {
        json_value(j, "lid", "%u", port->lid);
        json_value(j, "lmc", "%u", port->lmc);
        json_value(j, "mtu", "%u", port->mtu);
        json_value(j, "gid_index", "%u", port->gid_index);
        member(j, "gid", port->gid);
    }
    json_close(j, '}');
}

static void params_json(const struct info_component *c, struct json *j)
{
    json_open(j, "parameters", '[');
    for (int i = 0; i < c->count; i++) {
        const struct info_param *param = &c->params[i];

        json_open(j, NULL, '{');
        json_text(j, "name", param->name);
        json_text(j, "value", param->value != NULL ? param->value : "");
        member(j, "source", param->source);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void print_json(const struct info *info, FILE *out)
{
    const struct info_component *c = &info->component;
    struct json j;

    json_begin(&j, out);
    json_text(&j, "version", IBSHIFT_VERSION);
    member(&j, "open_mpi", c->release);
    member(&j, "folder", c->folder);
    json_bool(&j, "component", c->is_file);
    json_bool(&j, "found", c->is_found);
    json_bool(&j, "needs_path", c->needs_path);
    json_open(&j, "ports", '[');
    for (int i = 0; i < info->devices.count; i++) {
        port_json(&info->devices.ports[i], &j);
    }
    json_close(&j, ']');
    member(&j, "none_used", info->devices.why);
    member(&j, "model", info->model);
    member(&j, "model_error", info->model_error);
    member(&j, "model_parameters", info->model_text);
    member(&j, "fabric", info->fabric);
    member(&j, "fabric_error", info->fabric_error);
    json_value(&j, "fabric_hosts", "%u", info->fabric_hosts);
    json_value(&j, "fabric_switches", "%u", info->fabric_switches);
    member(&j, "fabric_host", info->host);
    json_value(&j, "fabric_lid", "%u", info->host_lid);
    params_json(c, &j);
    json_end(&j);
}

static void look_at_model(struct info *info)
{
    struct ibshift_model model =
        info->devices.is_software ? ibshift_model_software : ibshift_model_typical;
    char error[IBSHIFT_TEXT_ERROR];

    if (info->model[0] != '\0' && ibshift_model_read(info->model, &model, error) != 0) {
        snprintf(info->model_error, sizeof(info->model_error), "%s", error);
    }
    snprintf(info->model_text, sizeof(info->model_text),
             "L %g us, o_s %g to %g us, o_r %g to %g us, g %g us after %d messages, G %g ns/B, O "
             "%g ns/B, E %g ns/B, w %g us, "
             "copy %g ns/B, reduce %g ns/B",
             model.latency, model.send_max, model.send_min, model.recv_max, model.recv_min,
             model.gap, model.free_messages, model.gap_byte * 1e3, model.send_byte * 1e3,
             model.eager_byte * 1e3, model.wake, model.copy_byte * 1e3, model.reduce_byte * 1e3);
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

const char *info_fabric(struct info *info, char *text, size_t size)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err;

    if (ibshift_compiled_read(info->fabric, &f, &err) != 0) {
        snprintf(info->fabric_error, sizeof(info->fabric_error), "%s", err.text);
    } else {
        info->fabric_hosts = f->host_count;
        info->fabric_switches = f->switch_count;
        info->fabric_order = f->order_count;
        info->is_adaptive = f->is_adaptive;
        find_host(info, f);
        ibshift_fabric_free(f);
    }
    return fabric_misfit(info, text, size);
}

int cmd_info(int argc, char **argv)
{
    const char *model = NULL, *fabric = NULL;
    char text[INFO_TEXT];
    bool json = false, all = false;
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
    look_at_model(info);
    if (info->fabric[0] != '\0') {
        info_fabric(info, text, sizeof(text));
    }
    if (json) {
        print_json(info, stdout);
    } else {
        print_text(info, all, stdout);
    }
    rc = info->model_error[0] != '\0' || info->fabric_error[0] != '\0' ? CLI_USAGE : CLI_OK;
    info_free(info);
    pool_free(&pool);
    return rc;
}
