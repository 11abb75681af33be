/* The machine as `ibshift info` finds it: the component as Open MPI sees it, the devices as the
 * component sees them. */
#include "info/cmd.h"

#include <errno.h>
#include <hwloc.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "net/verbs/device.h"
#include "net/verbs/gid.h"

/* The component as Open MPI itself sees it: its ompi_info is asked, so that values from files,
 * environment and defaults are those that a job would get. */

extern char **environ;

static const char prefix[] = "mca:coll:ibshift:";

/* Its output to read from, or NULL. */
static FILE *run(const char *program, pid_t *pid)
{
    const char *const argv[] = {program,   "--param", "coll",       "ibshift",
                                "--level", "9",       "--parsable", NULL};
    posix_spawn_file_actions_t actions;
    FILE *file = NULL;
    int ends[2], rc;

    if (pipe(ends) != 0) {
        return NULL;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    rc = posix_spawn(pid, program, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (rc == 0) {
        file = fdopen(ends[0], "r");
    }
    if (file == NULL) {
        close(ends[0]);
        errno = rc != 0 ? rc : errno;
    }
    return file;
}

static struct info_param *param_named(struct info_component *c, const char *name, size_t length)
{
    for (int i = 0; i < c->count; i++) {
        if (strncmp(c->params[i].name, name, length) == 0 && c->params[i].name[length] == '\0') {
            return &c->params[i];
        }
    }
    if (c->count == INFO_PARAMS) {
        return NULL;
    }
    c->params[c->count] = (struct info_param){.name = strndup(name, length)};
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
    const char *name, *key;
    struct info_param *param;

    if (strncmp(line, prefix, sizeof(prefix) - 1) != 0) {
        return;
    }
    c->is_found = true;
    line += sizeof(prefix) - 1;
    if (strncmp(line, "param:", 6) != 0) {
        return;
    }
    name = line + 6;
    key = strchr(name, ':');
    if (key == NULL) {
        return;
    }
    if (strncmp(key, ":value:", 7) == 0) {
        param = param_named(c, name, (size_t)(key - name));
        if (param != NULL) {
            set_text(&param->value, key + 7);
        }
    } else if (strncmp(key, ":source:", 8) == 0) {
        param = param_named(c, name, (size_t)(key - name));
        if (param != NULL) {
            set_text(&param->source, key + 8);
        }
    }
}

static int ask(struct info_component *c)
{
    char *line = NULL;
    size_t room = 0;
    pid_t pid = -1;
    FILE *file = run(c->program, &pid);

    if (file == NULL) {
        return -errno;
    }
    while (getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        take_line(c, line);
    }
    free(line);
    fclose(file);
    (void)waitpid(pid, NULL, 0);
    return 0;
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

static int component_find(struct info_component *c)
{
    char *file;
    int rc;

    if (c->program[0] == '\0') {
        return 0;
    }
    if (asprintf(&file, "%s/mca_coll_ibshift.so", c->folder) >= 0) {
        c->is_file = access(file, R_OK) == 0;
        free(file);
    }
    rc = ask(c);
    if (rc == 0 && !c->is_found && c->is_file) {
        add_folder(c);
        rc = ask(c);
        c->needs_path = c->is_found;
    }
    return rc;
}

/* 0; or -errno when ompi_info does not run: then nothing is found. */
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
        .ports = list, .max_ports = most, .gid_index = gid_index, .fork = 0};
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

static int number_of(const struct info_component *c, const char *name, int initial)
{
    const char *text = param_value(c, name);
    long value;

    return cli_parse_long(text, -1, 255, &value) == 0 ? (int)value : initial;
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
    if (component_find(c) != 0) {
        c->is_found = false;
    }
    info->model = param_value(c, "model");
    info->fabric = param_value(c, "fabric");
    find_site_fabric(info, param_value(c, "site"));
    devices_find(&info->devices, param_value(c, "device"), number_of(c, "ports", 1),
                 number_of(c, "gid_index", -1));
}
