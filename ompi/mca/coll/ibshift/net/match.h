#ifndef IBSHIFT_NET_MATCH_H
#define IBSHIFT_NET_MATCH_H

/* A table of messages by peer and key; entries are embedded in their owners. */

#include "net/net.h"

struct ibshift_match {
    struct ibshift_match *next;
    struct ibshift_match_table *table; /* that it is in; NULL: none */
    uint32_t peer;
    struct ibshift_net_key key;
};

struct ibshift_match_table {
    struct ibshift_match **heads;
    uint32_t mask;
    uint32_t count;
};

int ibshift_match_init(struct ibshift_match_table *table);
void ibshift_match_free(struct ibshift_match_table *table);

/* Adding never fails: a table that cannot grow gets longer chains. What is in it is not added again,
   and what is in none not removed. */
void ibshift_match_add(struct ibshift_match_table *table, struct ibshift_match *entry);
void ibshift_match_remove(struct ibshift_match *entry);
struct ibshift_match *ibshift_match_find(const struct ibshift_match_table *table, uint32_t peer,
                                         const struct ibshift_net_key *key);

#endif
