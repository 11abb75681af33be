/*
 * Readers of what InfiniBand's own tools write; the format is found by looking at the content.
 *
 * Graphs:  ibnetdiscover's output (--ports too), ibsim's netlists, opensm-subnet.lst, ibdiagnet's
 * .lst, synthetic fabrics (synth.h), the compiled form (compiled.h), which also has
 * tables. Tables:  dump_fts and dump_lfts, opensm-lfts.dump, opensm.fdbs. Orders:
 * opensm-ftree-ca-order.dump, or a list of host names. Service levels:  opensm-path-records.dump, or
 * what "saquery PathRecord" prints.
 */
#ifndef IBSHIFT_FABRIC_READ_READ_H
#define IBSHIFT_FABRIC_READ_READ_H

#include "fabric/graph/error.h"
#include "fabric/graph/fabric.h"
#include "fabric/graph/lines.h"

enum ibshift_format {
    IBSHIFT_FORMAT_UNKNOWN,
    IBSHIFT_FORMAT_NETLIST,  /* ibnetdiscover, ibsim */
    IBSHIFT_FORMAT_SUBNET,   /* opensm-subnet.lst */
    IBSHIFT_FORMAT_ROWS,     /* ibnetdiscover --ports */
    IBSHIFT_FORMAT_LFTS,     /* dump_fts, opensm-lfts.dump */
    IBSHIFT_FORMAT_FDBS,     /* opensm.fdbs */
    IBSHIFT_FORMAT_ORDER,    /* opensm-ftree-ca-order.dump */
    IBSHIFT_FORMAT_COMPILED, /* ibshift fabric publish */
    IBSHIFT_FORMAT_PATHS,    /* opensm-path-records.dump, saquery's path records */
    IBSHIFT_FORMAT_FAR,      /* ibdiagnet2.far: known, and not read, as the next one */
    IBSHIFT_FORMAT_TOPOLOGY, /* Slurm's topology.conf */
};

/* By the first bytes of a file. */
enum ibshift_format ibshift_format_of(const char *head, size_t size);
/* A text that says what is joined with what. */
bool ibshift_format_is_graph(enum ibshift_format format);
bool ibshift_format_is_tables(enum ibshift_format format);

/*
 * A fabric from a file or a synthetic string, with the tables of a second file; tables NULL or "-":
 * those that the fabric carries, if any. On failure err says file:line and reason.
 */
int ibshift_fabric_load(const char *fabric, const char *tables, struct ibshift_fabric **f,
                        struct ibshift_warnings *warnings, struct ibshift_error *err);

/* The parts of the above; lines stand at the start, and take what is wrong. The graph readers do not call
 * ibshift_fabric_finish(). */
int ibshift_read_netlist(struct ibshift_lines *lines, struct ibshift_fabric *f,
                         struct ibshift_warnings *warnings);
int ibshift_read_subnet(struct ibshift_lines *lines, struct ibshift_fabric *f,
                        struct ibshift_warnings *warnings);
int ibshift_read_rows(struct ibshift_lines *lines, struct ibshift_fabric *f,
                      struct ibshift_warnings *warnings);
int ibshift_read_tables(struct ibshift_lines *lines, struct ibshift_fabric *f,
                        struct ibshift_warnings *warnings);

/*
 * Hosts in an order: one name a line (as ibshift_fabric_find_host() takes them, blank lines and #
 * comments skipped) or the lines of opensm-ftree-ca-order.dump, whose DUMMY entries become
 * IBSHIFT_NO_HOST if dummies is true and are skipped otherwise. *order is the caller's to free.
 */
int ibshift_read_order(struct ibshift_lines *lines, const struct ibshift_fabric *f, bool dummies,
                       uint32_t **order, uint32_t *count);
/*
 * The host of each rank of a job, in the same formats: a host may come several times, or once with
 * its number of ranks behind it: "NAME N", "NAME:N", "NAME slots=N".
 */
int ibshift_ranks_load(const char *path, const struct ibshift_fabric *f, uint32_t **host_of,
                       uint32_t *ranks, struct ibshift_error *err);
int ibshift_order_load(const char *path, const struct ibshift_fabric *f, bool dummies,
                       uint32_t **order, uint32_t *count, struct ibshift_error *err);

/*
 * The service level of each pair of hosts, for a fabric with tables that are finished. -ENODATA: the
 * file lacks a pair.
 */
int ibshift_read_sl(struct ibshift_lines *lines, struct ibshift_fabric *f);
int ibshift_sl_load(const char *path, struct ibshift_fabric *f, struct ibshift_error *err);

#endif
