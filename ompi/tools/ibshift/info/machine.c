/* The machine as `ibshift info` finds it: the component as Open MPI sees it, the devices as the
 * component sees them. */
#include "info/cmd.h"

#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "net/verbs/device.h"
#include "net/verbs/choice.h"

/* The component as Open MPI itself sees it: its ompi_info is asked, so that values from files,
 * environment and defaults are those that a job would get. */

static struct info_param *param_named(struct info_component *c, const char *name)
{
    for (int i = 0; i < c->count; i++) {
        if (strcmp(c->params[i].name, name) == 0) {
            return &c->params[i];
        }
    }
    if (c->count == INFO_PARAMS) {
        return NULL;
    }
    c->params[c->count] = (struct info_param){.name = strdup(name)};
    return c->params[c->count].name != NULL ? &c->params[c->count++] : NULL;
}

static void set_text(char **text, const char *from)
{
    size_t length = strlen(from);

    if (length >= 2 && from[0] == '"' && from[length - 1] == '"') {
        from++;
        length -= 2;
    }
    free(*text);
    *text = strndup(from, length);
}

/* mca:coll:ibshift:param:NAME:value:VALUE, or :source:SOURCE */
static void take_line(struct info_component *c, const char *line)
{
    static const char prefix[] = "mca:coll:ibshift:";
    char name[128], key[16];
    struct info_param *param;
    int at = 0;
    bool is_value;

    if (strncmp(line, prefix, strlen(prefix)) != 0) {
        return;
    }
    c->is_found = true;
    line += strlen(prefix);
    if (sscanf(line, "param:%127[^:]:%15[a-z]:%n", name, key, &at) != 2 || at == 0) {
        return;
    }
    is_value = strcmp(key, "value") == 0;
    param = is_value || strcmp(key, "source") == 0 ? param_named(c, name) : NULL;
    if (param != NULL) {
        set_text(is_value ? &param->value : &param->source, line + at);
    }
}

/* Reads what its ompi_info prints; it is not there: nothing is found. */
static void ask(struct info_component *c)
{
    char *command = NULL, *line = NULL;
    size_t room = 0;
    FILE *file = NULL;

    if (access(c->program, X_OK) == 0 &&
        asprintf(&command, "'%s' --param coll ibshift --level 9 --parsable", c->program) >= 0) {
        file = popen(command, "r");
    }
    while (file != NULL && getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        take_line(c, line);
    }
    if (file != NULL) {
        (void)pclose(file);
    }
    free(line);
    free(command);
}

/* Adds the folder to where Open MPI looks, for this process and what it starts. */
static void add_folder(const struct info_component *c)
{
    const char *old = getenv("OMPI_MCA_mca_base_component_path");
    char *path;

    if (asprintf(&path, "%s:%s", c->folder,
                 old != NULL && *old != '\0' ? old : "SYS_DEFAULT:USER_DEFAULT") >= 0) {
        setenv("OMPI_MCA_mca_base_component_path", path, 1);
        free(path);
    }
}

static void component_find(struct info_component *c)
{
    char *file;

    if (c->program[0] == '\0') {
        return;
    }
    if (asprintf(&file, "%s/mca_coll_ibshift.so", c->folder) >= 0) {
        c->is_file = access(file, R_OK) == 0;
        free(file);
    }
    ask(c);
    if (!c->is_found && c->is_file) {
        add_folder(c);
        ask(c);
        c->needs_path = c->is_found;
    }
}

void info_free(struct info *info)
{
    struct info_component *c = &info->component;

    for (int i = 0; i < c->count; i++) {
        free(c->params[i].name);
        free(c->params[i].value);
        free(c->params[i].source);
    }
}

/* The value of coll_ibshift_<name>, "" if not known. */
static const char *param_value(const struct info_component *c, const char *name)
{
    for (int i = 0; i < c->count; i++) {
        const struct info_param *param = &c->params[i];

        if (strncmp(param->name, "coll_ibshift_", 13) == 0 && strcmp(param->name + 13, name) == 0) {
            return param->value != NULL ? param->value : "";
        }
    }
    return "";
}

/* The devices of this machine, looked at with the component's own eyes. */

static void take_candidates(struct info_devices *devices, void *topology)
{
    struct ibshift_port_candidate *c = NULL;
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    int found = list != NULL ? ibshift_ports_find(list, topology, &c) : 0;

    for (int i = 0; i < found && devices->count < INFO_PORTS; i++) {
        struct info_port *port = &devices->ports[devices->count++];

        snprintf(port->device, sizeof(port->device), "%s", c[i].device);
        port->number = c[i].port;
        port->is_active = c[i].is_active;
        port->is_ethernet = c[i].is_ethernet;
        port->rate = c[i].rate;
        port->distance = c[i].distance;
    }
    free(c);
    if (list != NULL) {
        ibv_free_device_list(list);
    }
}

static struct info_port *port_of(struct info_devices *devices, const struct ibshift_port *used)
{
    for (int i = 0; i < devices->count; i++) {
        struct info_port *port = &devices->ports[i];

        if (port->number == used->number &&
            strcmp(port->device, ibv_get_device_name(used->device->context->device)) == 0) {
            return port;
        }
    }
    return NULL;
}

static void mark_used(struct info_devices *devices, const struct ibshift_verbs *verbs)
{
    for (int i = 0; i < verbs->port_count; i++) {
        const struct ibshift_port *used = &verbs->ports[i];
        struct info_port *port = port_of(devices, used);

        if (port != NULL) {
            port->place = (unsigned)i + 1;
            port->lid = used->attr.lid;
            port->lmc = used->attr.lmc;
            port->mtu = 128u << used->attr.active_mtu;
            port->gid_index = used->gid_index;
            ibshift_gid_text(verbs->blob.address[i].gid, port->gid);
        }
    }
}

/* What the component would do, asked as it asks itself. list, most, gid_index: its parameters. */
static void devices_find(struct info_devices *devices, const char *list, int most, int gid_index)
{
    struct ibshift_verbs_options options = {
        .ports = list, .max_ports = most, .gid_index = gid_index};
    struct ibshift_verbs *verbs;
    hwloc_topology_t topology = NULL;

    if (hwloc_topology_init(&topology) == 0 && hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        topology = NULL;
    }
    options.topology = topology;
    take_candidates(devices, topology);
    if (ibshift_verbs_open(&options, &verbs, devices->why, sizeof(devices->why)) == 0) {
        devices->why[0] = '\0';
        devices->is_software = ibshift_verbs_is_software(verbs);
        mark_used(devices, verbs);
        ibshift_verbs_close(verbs);
    }
    if (topology != NULL) {
        hwloc_topology_destroy(topology);
    }
}

/* Out of its range the component takes the initial value, which is the least. */
static int number_of(const struct info_component *c, const char *name, int least, int most)
{
    long value;

    return cli_parse_long(param_value(c, name), least, most, &value) == 0 ? (int)value : least;
}

/* As the component does. */
static void find_site_fabric(struct info *info, const char *site)
{
    size_t size = sizeof(info->site_fabric);

    if (info->fabric[0] == '\0' && site[0] != '\0' &&
        (size_t)snprintf(info->site_fabric, size, "%s/fabric", site) < size &&
        access(info->site_fabric, F_OK) == 0) {
        info->fabric = info->site_fabric;
    }
}

void info_machine(struct info *info)
{
    struct info_component *c = &info->component;

    c->program = IBSHIFT_OMPI_INFO;
    c->release = IBSHIFT_OMPI_VERSION;
    c->folder = IBSHIFT_COMPONENT_DIR;
    component_find(c);
    info->model = param_value(c, "model");
    info->fabric = param_value(c, "fabric");
    find_site_fabric(info, param_value(c, "site"));
    devices_find(&info->devices, param_value(c, "device"),
                 number_of(c, "ports", 1, IBSHIFT_PORTS_MAX), number_of(c, "gid_index", -1, 255));
}
