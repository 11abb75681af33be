/* `ibshift info`: what it gathers, before it is printed as text or as JSON. */
#ifndef IBSHIFT_INFO_CMD_H
#define IBSHIFT_INFO_CMD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { INFO_PORTS = 256, INFO_PARAMS = 256, INFO_TEXT = 512 };

/* A port of a device of this machine. */
struct info_port {
    char device[64];
    unsigned number;
    bool is_active, is_ethernet;
    uint32_t rate;     /* Mb/s */
    uint32_t distance; /* 0: nearest to this process */
    unsigned place;    /* 1..: the component's first, second...; 0: not used */
    unsigned lid, lmc, mtu, gid_index;
    char gid[48];
};

struct info_devices {
    struct info_port ports[INFO_PORTS];
    int count;
    bool is_software;    /* the device that is used first */
    char why[INFO_TEXT]; /* why none is used; empty: one is */
};

struct info_param {
    char *name, *value, *source; /* of one line each */
};

/* What Open MPI says of the component. */
struct info_component {
    const char *program; /* its ompi_info; "": built without Open MPI */
    const char *release; /* that it was built for */
    const char *folder;  /* where it was installed */
    bool is_file;        /* it is there */
    bool is_found;       /* Open MPI finds it by itself, or with the folder added */
    bool needs_path;     /* with the folder added */
    struct info_param params[INFO_PARAMS];
    int count;
};

struct info {
    struct info_component component;
    struct info_devices devices;
    const char *model, *fabric; /* files; "": none */
    char site_fabric[PATH_MAX]; /* the administrator's, where fabric is that */
    char model_error[INFO_TEXT], fabric_error[INFO_TEXT];
    uint32_t fabric_hosts, fabric_switches, fabric_order;
    bool is_adaptive;  /* the file says that switches choose the routes */
    char host[256];    /* of the fabric that this machine's port is; empty: not in it */
    unsigned host_lid; /* of that port in the file, and now; 0: not known */
    unsigned host_lid_now;
    char model_text[1024]; /* the parameters in use */
};

/* The component and the devices, and the files that the component's parameters name. info_free()
 * leaves the struct itself. */
void info_machine(struct info *info);
/* Reads the fabric file that is named. Returns why it is of no use here, or NULL. */
const char *info_fabric(struct info *info, char *text, size_t size);
void info_free(struct info *info);

int cmd_info(int argc, char **argv);

#endif
