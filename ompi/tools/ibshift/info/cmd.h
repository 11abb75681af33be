/* `ibshift info`: what it gathers, and the lines in which it and `ibshift doctor` say it. */
#ifndef IBSHIFT_INFO_CMD_H
#define IBSHIFT_INFO_CMD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { INFO_PORTS = 256, INFO_PARAMS = 256, INFO_TEXT = 512, INFO_NAME = 80, INFO_LINES = 512 };

enum info_verdict {
    INFO_FACT,
    INFO_NOTE, /* costs something: the text says what to do */
    INFO_BAD,  /* the component cannot run natively */
};

struct info_line {
    char name[INFO_NAME];
    char text[INFO_TEXT];
    enum info_verdict verdict;
};

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
    char host[256];             /* of the fabric that this machine's port is; empty: not in it */
    unsigned host_lid;          /* of that port in the file, and now; 0: not known */
    unsigned host_lid_now;
    struct info_line lines[INFO_LINES];
    int line_count;
};

/* The component and the devices, and the files that the component's parameters name. info_free()
 * leaves the struct itself. */
void info_machine(struct info *info);
__attribute__((format(printf, 4, 5))) void info_say(struct info *info, enum info_verdict verdict,
                                                    const char *name, const char *format, ...);
void info_say_component(struct info *info);
/* Those that are used, or all; and why none is. */
void info_say_ports(struct info *info, bool all);
/* The fabric file that is named; false: it cannot be read. */
bool info_say_fabric(struct info *info);
bool info_has_bad(const struct info *info);
void info_print(const struct info *info, bool is_json);
void info_free(struct info *info);

int cmd_info(int argc, char **argv);

#endif
