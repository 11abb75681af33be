/* The connection manager's device file, as redirect.c shows it to programs, and what it keeps for them. */
#ifndef SOFTHCA_CM_H
#define SOFTHCA_CM_H

#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <sys/types.h>

#include "verbs/hca.h"

#define CM_PATH "/dev/infiniband/rdma_cm"

/* What open, write and close do with it. */
int cm_open(int flags);
bool cm_is_channel(int fd);
ssize_t cm_write(int fd, const void *command, size_t bytes); /* rdmacm.c */
void cm_close(int fd);

/* The address of a network interface of the process's host (CM_INTERFACE), in network order; 0: there is no such one. */
uint32_t cm_address_of(const char *interface); /* rdmacm.c */

union cm_address {
    sa_family_t family;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    struct {
        sa_family_t family;
        __be16 pkey;
        __be32 flow;
        union ibv_gid gid;
    } ib;

    struct __kernel_sockaddr_storage any;
};

/* What a program knows by a number: an identifier, or an identifier's membership of a group. */
struct cm_object {
    struct cm_object *next;
    uint32_t number;
    int channel;
    uint64_t user;
    uint32_t reported;    /* events that the program has read */
    struct cm_object *id; /* of a membership */
    bool has_joined;
    struct group_record group;
    uint16_t space; /* of an identifier: enum rdma_ucm_port_space */
    uint8_t type;   /* its queue pair's */
    uint32_t port;  /* SHM_NONE: has no address */
    union cm_address from, to;
};

/* Around all that follows, but for cm_next_event(). */
void cm_lock(void);
void cm_unlock(void);

struct cm_object *cm_find(int fd, uint32_t number, bool is_membership);
struct cm_object *cm_make(int fd, uint64_t user, struct cm_object *id);
/* With its memberships and unread events. */
void cm_drop(struct cm_object *o);

/* An event that is to be told, and telling it. */
struct cm_event *cm_event_new(void);
void cm_tell(struct cm_object *of, struct cm_event *e, uint32_t what, int status,
             const struct rdma_ucm_ud_param *about);

/* Waits for it. */
int cm_next_event(int fd, void *answer, size_t room);

#endif
