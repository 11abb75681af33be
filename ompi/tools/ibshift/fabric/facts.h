/* What is known of the subnet beside its graph and tables: read from what `sminfo` prints and from
 * ibdiagnet's .db_csv. */
#ifndef IBSHIFT_FABRIC_FACTS_H
#define IBSHIFT_FABRIC_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fabric/graph/error.h"

/* 0: not said. */
struct fabric_facts {
    uint64_t subnet_prefix, sm_guid;
    uint32_t activity; /* of the subnet manager, as sminfo counts it */
    uint16_t sm_lid;
    uint32_t adaptive_switches;
};

enum fabric_facts_kind { FABRIC_FACTS_NONE, FABRIC_FACTS_SMINFO, FABRIC_FACTS_DB_CSV };

/* By the first bytes of a file. */
enum fabric_facts_kind fabric_facts_kind(const char *head, size_t size);

/* Adds what the file says; -EINVAL: it contradicts itself or what is known already. name: the
 * file's, for err. */
int fabric_facts_read(FILE *file, const char *name, enum fabric_facts_kind kind,
                      struct fabric_facts *facts, struct ibshift_error *err);

#endif
