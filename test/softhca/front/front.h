/* The parts of softhca-run. */
#ifndef SOFTHCA_FRONT_H
#define SOFTHCA_FRONT_H

#include <stdint.h>
#include <stdbool.h>

#include "fault/fault.h"
#include "shm/shm.h"
#include "fabric/graph/fabric.h"

struct options {
    struct shm_conf conf;
    const char *dir;
    const char *control, *tell;
    const char *wire, *fabric, *lfts, *place, *report; /* NULL: not given */
    uint32_t gib;                                      /* of the shared file */
    uint32_t scale;
    bool bond;      /* a port has two cables, and a queue pair one of them */
    uint32_t burst; /* packets of the wire; 0: not given */
    bool quiet;
    uint32_t faults;
    struct shm_fault fault[SHM_FAULTS / 4];
};

/* A message of one line; returns `err`. */
int front_refuse(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads options up to "--" or the command; *command is its index in argv. 0, -EINVAL after a
   message, or 1 when help or the version was asked for and printed. */
int options_parse(int argc, char **argv, struct options *o, int *command);

/* Reads the faults' texts, when the hosts are known. 0, or -EINVAL after a message. */
int options_faults(struct options *o);

/* The fabric that --fabric names, and which of its hosts each modelled host is. */
struct place {
    struct ibshift_fabric *fabric; /* NULL: none was asked for */
    uint32_t *host;                /* modelled host -> host of the fabric */
    uint32_t hosts;
};

/* Reads what the options name and settles conf.hosts, conf.lmc and conf.per_host. 0, or a negative
   errno after a message. */
int place_load(struct options *o, struct place *place);

/* Directed links: the fabric's, or a cable each way for every port at one crossbar switch. */
uint32_t place_links(const struct place *place);

/*
 * The run's folder, and the shared file in it. Runs start and end beside each other in one base
 * folder, of one user or of many. What is seen there as `shm` is locked by its runner and has its
 * magic from the first moment on, so a sweeper takes away only what has both owner and magic of a
 * run of this user's, and no lock any more.
 */

/* Removes what dead runs left in `base`, makes a folder and maps its shared file of `gib` GiB. The path is then
   in shm.head->dir. 0, or -1 after a message. */
int folder_make(const char *base, uint32_t gib);

/* Removes the folder: by the runner, or by its guard. Without one nothing happens. */
void folder_remove(void);

/* The modelled hosts' HCAs and ports: written once by softhca-run before anything starts. */
void fabric_make_ports(const struct place *place);

/* Makes <dir>/class/infiniband... and <dir>/dev for programs that look there; devices with a bus
   are hardware to them. 0 or -1 after a message. */
int sysfs_make(bool has_bus);

/* Fills the wire's part of the shared file, and says afterwards what the links carried. */

/* Modelled wires: what softhca-run --wire takes. */
struct profile {
    const char *name;
    double link_rate; /* payload bytes per nanosecond (GB/s) of a 4x cable, headers taken off */
    double hca_rate;  /* the same at the HCA: the inverse of LogGP's gap per byte */
    double gap_ns;    /* from one message to the next at the HCA */
    double hca_ns;    /* latency of one HCA: two are passed */
    double hop_ns;    /* latency of a switch with its cable */
    const char *help;
};

/* After the ports have been made. 0, or a negative errno after a message. */
int wire_make(const struct profile *profile, const struct options *o, const struct place *place);

/* Finds the profile and checks what goes with it; *profile NULL: no wire. */
int wire_choose(const struct options *o, const struct profile **profile);

/* Before the run: can that be written? */
int wire_report_check(const struct options *o);
/* Writes what the options ask for, at the end of the run: what each link carried, and when. 0, or a
   negative errno after a message. */
int wire_report(const struct options *o, const struct profile *profile, const struct place *place);

/*
 * The thread of softhca-run that makes faults happen: those that wait for their time, and those
 * that come through the control socket (one fault a line; each is answered by "ok", or by lines of
 * a report, or by "error: ..."; an empty line ends the answer).
 */

/* Opens the socket, if a path is given: before the run starts. 0, or -errno after a message. */
int control_open(const char *path);
/* Begins the options' faults: those that are due happen now. */
void control_begin(const struct options *o);
/* Does what is due, as the thread does it. Returns when to call again, or TIME_NEVER. */
uint64_t control_act(void);
/* Starts the thread, in the process that waits for the command. */
int control_start(void);
/* Ends it, and removes the socket. */
void control_stop(void);
/* In the guard, which does not listen: at its start, and when the runner was killed. */
void control_hang_up(void);
void control_remove(void);

/* At the end of the run, unless quiet: how often each fault hit. */
void control_report(void);

/* The client: says each fault, prints the answers. 0, or 2 after a message. */
int control_tell(const char *path, char **faults);

#endif
