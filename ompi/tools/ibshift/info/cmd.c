/* `ibshift info`: what is installed here and what a process started here would use. */
#include "info/cmd.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/cmd.h"
#include "fabric/read/compiled.h"
#include "choose/param.h"

static void look_at_model(struct info *info)
{
    struct ibshift_model model =
        info->devices.is_software ? ibshift_model_software : ibshift_model_typical;
    char error[IBSHIFT_MODEL_ERROR_SIZE];

    if (info->model[0] != '\0' && ibshift_model_read(info->model, &model, error) != 0) {
        snprintf(info->model_error, sizeof(info->model_error), "%s", error);
    }
    snprintf(info->model_text, sizeof(info->model_text),
             "L %g us, o_s %g to %g us, o_r %g to %g us, g %g us after %d messages, G %g ns/B, O "
             "%g ns/B, "
             "copy %g ns/B, reduce %g ns/B",
             model.latency, model.send_max, model.send_min, model.recv_max, model.recv_min,
             model.gap, model.free_messages, model.gap_byte * 1e3, model.send_byte * 1e3,
             model.copy_byte * 1e3, model.reduce_byte * 1e3);
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
        uint32_t node =
            port->place == 1 ? ibshift_fabric_find_guid(f, guid_of(port)) : IBSHIFT_NO_NODE;

        if (node != IBSHIFT_NO_NODE) {
            snprintf(info->host, sizeof(info->host), "%s", ibshift_node_name(f, node));
        }
    }
}

static void look_at_fabric(struct info *info)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err;

    if (info->fabric[0] == '\0') {
        return;
    }
    if (ibshift_compiled_read(info->fabric, &f, &err) != 0) {
        snprintf(info->fabric_error, sizeof(info->fabric_error), "%s", err.text);
        return;
    }
    info->fabric_hosts = f->host_count;
    info->fabric_switches = f->switch_count;
    info->fabric_order = f->order_count;
    find_host(info, f);
    ibshift_fabric_free(f);
}

static int number_of(const struct info_component *c, const char *name, int initial)
{
    const char *text = info_param(c, name);
    long value;

    return cli_parse_long(text, -1, 255, &value) == 0 ? (int)value : initial;
}

static void gather(struct info *info, const char *model, const char *fabric)
{
    struct info_component *c = &info->component;

    c->program = IBSHIFT_OMPI_INFO;
    c->release = IBSHIFT_OMPI_VERSION;
    c->folder = IBSHIFT_COMPONENT_DIR;
    if (info_component_find(c) != 0) {
        c->is_found = false;
    }
    info->model = model != NULL ? model : info_param(c, "model");
    info->fabric = fabric != NULL ? fabric : info_param(c, "fabric");
    info_devices_find(&info->devices, info_param(c, "device"), number_of(c, "ports", 1),
                      number_of(c, "gid_index", -1));
    look_at_model(info);
    look_at_fabric(info);
}

int cmd_info(int argc, char **argv)
{
    const char *model = NULL, *fabric = NULL;
    bool json = false, all = false;
    const struct cli_option options[] = {
        {"--model", 0, CLI_TEXT, "FILE", "this model instead of that of coll_ibshift_model",
         .where = &model},
        {"--fabric", 0, CLI_TEXT, "FILE",
         "this compiled fabric instead of that of coll_ibshift_fabric", .where = &fabric},
        {"--all", 0, CLI_FLAG, NULL, "all parameters, not only those that are set", .where = &all},
        cli_json_option(&json),
        {.name = NULL},
    };
    struct cli_args args = {.command = "info", .usage = "", .options = options};
    int rc = cli_parse(&args, argc, argv);
    struct info *info;

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    info = calloc(1, sizeof(*info));
    if (info == NULL) {
        return cli_error("info", "out of memory");
    }
    gather(info, model, fabric);
    if (json) {
        info_print_json(info, stdout);
    } else {
        info_print(info, all, stdout);
    }
    rc = info->model_error[0] != '\0' || info->fabric_error[0] != '\0' ? CLI_USAGE : CLI_OK;
    info_component_free(&info->component);
    free(info);
    return rc;
}
