/* Joining a multicast group by the kernel's own interface, which librdmacm uses too: what it takes is four commands. */
#include "net/cast/join.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/verbs/device.h"

enum { PATIENCE = 5000 /* ms */, MULTICAST_JOIN = 12, NAME = 160, IPOIB_ADDRESS = 3 * 20 - 1 };
enum { ADDRESS = 1, MEMBERSHIP }; /* what events are of */

#define DEVICE "/dev/infiniband/rdma_cm"

/* 0 or a negative errno. body: of the kernel's struct of this command. */
static int command(int device, uint32_t number, const void *body, size_t size, size_t answer)
{
    struct {
        struct rdma_ucm_cmd_hdr head;
        _Alignas(8) uint8_t body[sizeof(struct rdma_ucm_join_mcast)];
    } all = {.head = {.cmd = number, .in = (uint16_t)size, .out = (uint16_t)answer}};
    size_t bytes = sizeof(all.head) + size;
    ssize_t n;

    memcpy(all.body, body, size);
    n = write(device, &all, bytes);
    return n == (ssize_t)bytes ? 0 : n < 0 ? -errno : -EIO;
}

/* A file's first line, empty if it cannot be read: an attribute that a device does not have gives EINVAL. */
static void read_line(const char *folder, const char *name, char *line, size_t size)
{
    char path[2 * NAME];
    ssize_t n = -1;
    int file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        n = read(file, line, size - 1);
        close(file);
    }
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
}

static unsigned long read_number(const char *folder, const char *name)
{
    char line[NAME];

    read_line(folder, name, line, sizeof(line));
    return strtoul(line, NULL, 0);
}

/* Whether it is the port's IPoIB. Its address ends with the port's first GID; old kernels have the port's number in
   dev_id. */
static bool is_over(const char *folder, const struct ibshift_port *port)
{
    unsigned long at = read_number(folder, "dev_port");
    union ibv_gid gid;
    char line[NAME];

    at = at != 0 ? at : read_number(folder, "dev_id");
    if (at + 1 != port->number || read_number(folder, "type") != ARPHRD_INFINIBAND ||
        ibv_query_gid(port->device->context, port->number, 0, &gid) != 0) {
        return false;
    }
    read_line(folder, "address", line, sizeof(line));
    for (size_t i = 0; i < sizeof(gid.raw); i++) {
        if (strlen(line) != IPOIB_ADDRESS || strtoul(line + 3 * (4 + i), NULL, 16) != gid.raw[i]) {
            return false;
        }
    }
    return true;
}

/* The kernel names an Ethernet port's interface beside its GIDs, and none beside those of InfiniBand: there it is one of
   its device's. name stays empty where there is none. */
static void interface_of(const struct ibshift_port *port, bool is_ethernet, char name[IFNAMSIZ])
{
    char folder[NAME], file[2 * NAME];
    const struct dirent *entry;
    DIR *all;

    snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s",
             ibv_get_device_name(port->device->context->device));
    if (is_ethernet) {
        snprintf(file, sizeof(file), "ports/%u/gid_attrs/ndevs/%u", port->number, port->gid_index);
        read_line(folder, file, name, IFNAMSIZ);
        return;
    }
    strncat(folder, "/device/net", sizeof(folder) - strlen(folder) - 1);
    all = opendir(folder);
    while (all != NULL && name[0] == '\0' && (entry = readdir(all)) != NULL) {
        snprintf(file, sizeof(file), "%s/%s", folder, entry->d_name);
        if (strlen(entry->d_name) < IFNAMSIZ && is_over(file, port)) {
            strcpy(name, entry->d_name);
        }
    }
    if (all != NULL) {
        closedir(all);
    }
}

static int address_of(const char *name, struct sockaddr_in *address)
{
    struct ifreq asked = {0};
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rc;

    if (any < 0) {
        return -errno;
    }
    snprintf(asked.ifr_name, sizeof(asked.ifr_name), "%s", name);
    rc = ioctl(any, SIOCGIFADDR, &asked) == 0 ? 0 : -errno;
    close(any);
    memcpy(address, &asked.ifr_addr, sizeof(*address));
    return rc;
}

static int bind_to(struct ibshift_join *join, const struct sockaddr_in *address)
{
    struct rdma_ucm_create_id_resp made;
    struct rdma_ucm_create_id create = {
        .uid = ADDRESS, .response = (uintptr_t)&made, .ps = RDMA_PS_UDP, .qp_type = IBV_QPT_UD};
    struct rdma_ucm_bind bind = {.addr_size = sizeof(*address)};
    int rc =
        command(join->device, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), sizeof(made));

    if (rc != 0) {
        return rc;
    }
    bind.id = join->id = made.id;
    memcpy(&bind.addr, address, sizeof(*address));
    return command(join->device, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0);
}

/* The interface is of the partition that the net uses, and of its port. */
static int check(const struct ibshift_join *join, const struct ibshift_verbs *verbs, char *error,
                 size_t size)
{
    struct rdma_ucm_query_addr_resp is = {0};
    struct rdma_ucm_query query = {
        .response = (uintptr_t)&is, .id = join->id, .option = RDMA_USER_CM_QUERY_ADDR};
    const struct ibshift_port *port = &verbs->ports[0];
    uint16_t ours = verbs->blob.address[0].pkey;
    int rc = command(join->device, RDMA_USER_CM_CMD_QUERY, &query, sizeof(query), sizeof(is));

    if (rc != 0) {
        snprintf(error, size, "the connection manager does not tell its port: %s", strerror(-rc));
    } else if (is.node_guid != ibv_get_device_guid(port->device->context->device) ||
               is.port_num != port->number) {
        snprintf(error, size, "its network interface belongs to another port");
        rc = -ENODEV;
    } else if (!verbs->blob.address[0].is_ethernet &&
               ((be16toh(is.pkey) ^ ours) & IBSHIFT_PKEY_PARTITION) != 0) {
        snprintf(error, size,
                 "its network interface is in partition 0x%x, messages go in 0x%x "
                 "(coll_ibshift_pkey)",
                 be16toh(is.pkey), ours);
        rc = -ENOKEY;
    }
    return rc;
}

int ibshift_join_open(const struct ibshift_verbs *verbs, struct ibshift_join *join, char *error,
                      size_t size)
{
    const struct ibshift_port *port = &verbs->ports[0];
    struct sockaddr_in address = {0};
    char name[IFNAMSIZ] = "";
    int rc;

    join->verbs = verbs;
    join->device = open(DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (join->device < 0) {
        rc = -errno;
        snprintf(error, size, "%s: %s (is the module rdma_ucm loaded?)", DEVICE, strerror(-rc));
        return rc;
    }
    interface_of(port, verbs->blob.address[0].is_ethernet, name);
    if (name[0] == '\0') {
        snprintf(error, size, "%s:%u has no network interface (IPoIB, on Ethernet the port's own)",
                 ibv_get_device_name(port->device->context->device), port->number);
        rc = -ENODEV;
    } else {
        rc = address_of(name, &address);
        rc = rc == 0 ? bind_to(join, &address) : rc;
        if (rc != 0) {
            snprintf(error, size, "%s has no IPv4 address that the connection manager takes: %s",
                     name, strerror(-rc));
        }
    }
    rc = rc == 0 ? check(join, verbs, error, size) : rc;
    if (rc != 0) {
        ibshift_join_close(join);
    }
    return rc;
}

static int64_t now(void) /* ms */
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* What happens to the device or its addresses may be told before. */
static int answer(const struct ibshift_join *join, struct rdma_ucm_event_resp *event)
{
    struct rdma_ucm_get_event get = {.response = (uintptr_t)event};
    struct pollfd wait = {.fd = join->device, .events = POLLIN};
    int64_t end = now() + PATIENCE, left;

    while ((left = end - now()) > 0) {
        int n = poll(&wait, 1, (int)left);
        int rc = n < 0    ? -errno
                 : n == 0 ? -ETIMEDOUT
                          : command(join->device, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get),
                                    sizeof(*event));

        if (rc == 0 ? event->uid == MEMBERSHIP : rc != -EINTR && rc != -EAGAIN) {
            return rc;
        }
    }
    return -ETIMEDOUT;
}

/* Members know a datagram of RoCE by the address that it came from: that of this process's card. */
static bool is_from_card(const struct ibshift_verbs *verbs, const struct ibshift_cast_place *place)
{
    const struct ibshift_verbs_address *ours = &verbs->blob.address[0];
    union ibv_gid gid;

    return !ours->is_ethernet || (ibv_query_gid(verbs->ports[0].device->context, place->port,
                                                place->gid_index, &gid) == 0 &&
                                  memcmp(gid.raw, ours->gid, sizeof(gid.raw)) == 0);
}

static void set_place(const struct rdma_ucm_ud_param *is, struct ibshift_cast_place *place)
{
    memcpy(place->gid, is->ah_attr.grh.dgid, sizeof(place->gid));
    place->lid = is->ah_attr.dlid;
    place->service_level = is->ah_attr.sl;
    place->gid_index = is->ah_attr.grh.sgid_index;
    place->hops = is->ah_attr.grh.hop_limit;
    place->port = is->ah_attr.port_num;
    place->key = is->qkey;
}

/* How the kernel takes a group: the one that the subnet administrator is to make, or has made, as IPv6; on Ethernet one of IPv4,
   drawn where there is none yet, among those for use within an organization. */
static uint16_t name_group(const struct ibshift_join *join, const uint8_t gid[16], bool is_new,
                           void *address)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr_in in = {.sin_family = AF_INET};
    uint32_t drawn = 0;

    if (!join->verbs->blob.address[0].is_ethernet) {
        memcpy(&in6.sin6_addr, gid, 16);
        memcpy(address, &in6, sizeof(in6));
        return sizeof(in6);
    }
    if (is_new) {
        (void)getrandom(&drawn, sizeof(drawn), 0);
        in.sin_addr.s_addr = htonl(239u << 24 | 192u << 16 | (drawn & 0x3ffff));
    } else {
        memcpy(&in.sin_addr, gid + 12, 4);
    }
    memcpy(address, &in, sizeof(in));
    return sizeof(in);
}

int ibshift_join_group(struct ibshift_join *join, struct ibshift_cast_place *place, char *error,
                       size_t size)
{
    struct rdma_ucm_create_id_resp made;
    struct rdma_ucm_join_mcast want = {.response = (uintptr_t)&made,
                                       .uid = MEMBERSHIP,
                                       .id = join->id,
                                       .join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER};
    struct rdma_ucm_event_resp event = {0};
    static const uint8_t none[16];
    bool is_new = memcmp(place->gid, none, sizeof(none)) == 0;
    int rc;

    if (is_new && getrandom(&place->secret, sizeof(place->secret), 0) != sizeof(place->secret)) {
        snprintf(error, size, "the system has no random number for it");
        return -EIO;
    }
    want.addr_size = name_group(join, place->gid, is_new, &want.addr);
    rc = command(join->device, RDMA_USER_CM_CMD_JOIN_MCAST, &want, sizeof(want), sizeof(made));
    rc = rc == 0 ? answer(join, &event) : rc;
    if (rc == -ETIMEDOUT) {
        snprintf(error, size, "the subnet administrator did not answer within %d s",
                 PATIENCE / 1000);
        return rc;
    }
    if (rc != 0) {
        snprintf(error, size, "the connection manager does not take the group: %s", strerror(-rc));
        return rc;
    }
    if (event.event != MULTICAST_JOIN || event.status != 0) {
        rc = event.status != 0 ? -abs((int)event.status) : -EPROTO;
        snprintf(error, size, "the subnet administrator refused the group: %s", strerror(-rc));
        return rc;
    }
    set_place(&event.param.ud, place);
    if (!is_from_card(join->verbs, place)) {
        snprintf(error, size,
                 "its datagrams would leave from GID index %u, messages leave from another address "
                 "(coll_ibshift_gid_index)",
                 place->gid_index);
        return -EADDRNOTAVAIL;
    }
    return 0;
}

void ibshift_join_close(struct ibshift_join *join)
{
    if (join->device >= 0) {
        close(join->device);
    }
    join->device = -1;
}
