/* `ibshift doctor`: what its parts share. */
#ifndef IBSHIFT_DOCTOR_H
#define IBSHIFT_DOCTOR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "info/cmd.h"

enum { DOCTOR_TEXT = 512 };

/* The port that is tried: the component's first one, or an active one where it has none. */
struct doctor_port {
    struct ibv_context *context; /* NULL: there is none */
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_port_attr attr;
    struct ibv_device_attr device;
    union ibv_gid gid;
    char name[64];
    uint8_t number, gid_index;
    uint16_t pkey_index;
};

struct doctor {
    struct info info;
    struct doctor_port port;
};

/* machine.c: devices, ports, keys, GIDs and limits as they are told. */
void doctor_machine(struct doctor *d);
void doctor_port_close(struct doctor *d);
/* Of the port: before true remembers, then tells which have grown. */
void doctor_counters(struct doctor *d, bool is_before);
/* ns */
uint64_t doctor_now(void);

/* tries.c: what the device does when it is asked to. */
void doctor_tries(struct doctor *d);

/* pair.c: two processes over the net itself. fd leads to the other one. 0, or -errno and a line. */
int doctor_pair(struct doctor *d, int fd, int self);

int cmd_doctor(int argc, char **argv);

#endif
