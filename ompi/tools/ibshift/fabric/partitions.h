/* Which hosts may talk: partitions by OpenSM's partitions.conf, or the tables of keys that
 * "saquery PKTR" prints to those who give the key of the subnet manager. */
#ifndef IBSHIFT_FABRIC_PARTITIONS_H
#define IBSHIFT_FABRIC_PARTITIONS_H

#include "fabric/facts.h"
#include "fabric/graph/fabric.h"
#include "fabric/graph/lines.h"

struct fabric_member;

struct fabric_partitions {
    struct fabric_member *members;
    uint32_t count;
    bool are_there; /* a file of them was read */
    bool has_rules; /* of partitions.conf: the last for a port and key counts; else the full one */
};

struct fabric_apart {
    uint64_t pairs;       /* of hosts that share no partition in which one is a full member */
    uint32_t first, with; /* such a pair */
    uint32_t unsaid;      /* hosts that no table of keys is of; they are in no pair */
};

/* By the first bytes of a file that is nothing else. */
bool fabric_partitions_are(const char *head, size_t size);
/* lines stand at the start. */
int fabric_partitions_read(struct fabric_partitions *p, struct ibshift_lines *lines,
                           struct ibshift_error *err);
int fabric_partitions_check(const struct fabric_partitions *p, const struct ibshift_fabric *f,
                            const struct fabric_facts *facts, struct fabric_apart *apart,
                            struct ibshift_error *err);
void fabric_partitions_free(struct fabric_partitions *p);

#endif
