/* The files that programs read beside libibverbs: Open MPI looks for the folder, UCX for types. */
#include "front/front.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shm/shm.h"

enum { PAGE = 4096 };

static int failed;

/* The first failure alone is told. */
static void fail(const char *path, int err)
{
    if (failed) {
        return;
    }
    failed = 1;
    if (err == ENOSPC) {
        shm_say_full(PAGE);
    } else {
        front_refuse(0, "%s: %s", path, strerror(err));
    }
}

/* A file, or with NULL a folder, and the folders above it. */
__attribute__((format(printf, 2, 3))) static void make(const char *text, const char *format, ...)
{
    char path[600];
    va_list args;
    FILE *f;

    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    for (char *slash = path + strlen(shm.head->dir); (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            fail(path, errno);
        }
        *slash = '/';
    }
    f = text ? fopen(path, "w") : NULL;
    if (text && (!f || fputs(text, f) < 0 || fclose(f) != 0)) {
        fail(path, errno);
    }
}

static bool is_ib(void)
{
    return shm.head->conf.link == IBV_LINK_LAYER_INFINIBAND;
}

static void hex_of(const uint8_t *bytes, size_t n, char *text)
{
    for (size_t i = 0; i < n; i++) {
        sprintf(text + 3 * i, "%02x%c", bytes[i], i + 1 < n ? ':' : '\n');
    }
}

/* IPoIB, of one host, where only these files of an interface are. */
static void interface_files(const char *dir, const struct shm_port *p)
{
    uint8_t bytes[20] = {0x80, 0, 0, (uint8_t)(0x40 + p->num)};
    char folder[400], text[64];

    snprintf(folder, sizeof(folder), "%s/host%u/softhca%u/device/net/" CM_INTERFACE, dir, p->host,
             p->hca, p->hca, p->num);
    memcpy(bytes + 4, p->gid[0].raw, 16);
    hex_of(bytes, sizeof(bytes), text);
    make(text, "%s/address", folder);
    make("32\n", "%s/type", folder);
    snprintf(text, sizeof(text), "%u\n", p->num - 1);
    make(text, "%s/dev_port", folder);
}

static void port_files(const char *hca, const struct shm_port *p)
{
    char netdev[32];

    snprintf(netdev, sizeof(netdev), CM_INTERFACE "\n", p->hca, p->num);
    for (uint32_t i = 0; i < p->gids; i++) {
        const uint8_t *g = p->gid[i].raw;
        char gid[64];

        for (int w = 0; w < 8; w++) {
            snprintf(gid + 5 * w, sizeof(gid) - 5 * (size_t)w, "%02x%02x%s", g[2 * w], g[2 * w + 1],
                     w < 7 ? ":" : "\n");
        }
        make(gid, "%s/ports/%u/gids/%u", hca, p->num, i);
        make(is_ib() ? "" : netdev, "%s/ports/%u/gid_attrs/ndevs/%u", hca, p->num, i);
        make(p->gid_type[i] == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2\n" : "IB/RoCE v1\n",
             "%s/ports/%u/gid_attrs/types/%u", hca, p->num, i);
    }
}

int sysfs_make(bool has_bus)
{
    const struct shm_conf *conf = &shm.head->conf;
    const char *dir = shm.head->dir;

    for (uint32_t host = 0; host < conf->hosts && !failed; host++) { /* as if each had booted */
        char boot[64];

        snprintf(boot, sizeof(boot), "50f74ca0-0000-4000-8000-%012x\n", host);
        make(boot, "%s/boot_id.%u", dir, host);
    }
    for (uint32_t i = 0; is_ib() && i < shm.head->port_count && !failed; i++) {
        interface_files(dir, &shm.ports[i]);
    }
    for (uint32_t h = 0; h < conf->hcas && !failed; h++) {
        char hca[400];

        snprintf(hca, sizeof(hca), "%s/class/infiniband/softhca%u", dir, h);
        make(NULL, "%s/class/infiniband_verbs/uverbs%u/", dir, h);
        make("-1\n", "%s/device/numa_node", hca);
        if (has_bus) {
            make(NULL, "%s/device/subsystem/", hca);
        }
        make("", "%s/dev/uverbs%u", dir, h);
        for (uint32_t p = 0; p < conf->ports; p++) {
            port_files(hca, &shm.ports[h * conf->ports + p]);
        }
    }
    return failed ? -1 : 0;
}
