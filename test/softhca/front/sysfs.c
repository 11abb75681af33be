/* The files that programs read beside libibverbs: Open MPI looks for the folder, UCX for types. */
#include "front/sysfs.h"

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
        fprintf(stderr, "softhca-run: %s: %s\n", path, strerror(err));
    }
}

__attribute__((format(printf, 1, 2))) static void folder(const char *format, ...)
{
    char path[512];
    va_list args;

    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        fail(path, errno);
    }
}

static void text_file(const char *folder_name, const char *name, const char *text)
{
    char path[600];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder_name, name);
    f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        fail(path, errno);
    }
}

static void port_files(const char *hca, const struct shm_port *p)
{
    char at[500], name[16], gid[64];

    folder("%s/ports/%u", hca, p->num);
    folder("%s/ports/%u/gids", hca, p->num);
    folder("%s/ports/%u/gid_attrs", hca, p->num);
    folder("%s/ports/%u/gid_attrs/types", hca, p->num);
    folder("%s/ports/%u/gid_attrs/ndevs", hca, p->num);
    for (uint32_t i = 0; i < p->gids; i++) {
        const uint8_t *g = p->gid[i].raw;

        snprintf(name, sizeof(name), "%u", i);
        snprintf(at, sizeof(at), "%s/ports/%u/gid_attrs/types", hca, p->num);
        text_file(at, name, p->gid_type[i] == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2\n" : "IB/RoCE v1\n");
        for (int w = 0; w < 8; w++) {
            snprintf(gid + 5 * w, sizeof(gid) - 5 * (size_t)w, "%02x%02x%s", g[2 * w], g[2 * w + 1],
                     w < 7 ? ":" : "\n");
        }
        snprintf(at, sizeof(at), "%s/ports/%u/gids", hca, p->num);
        text_file(at, name, gid);
    }
}

/* Of the modelled hosts: as if each had booted by itself. */
static void boot_files(const char *dir)
{
    for (uint32_t host = 0; host < shm.head->conf.hosts && !failed; host++) {
        char name[32], boot[64];

        snprintf(name, sizeof(name), "boot_id.%u", host);
        snprintf(boot, sizeof(boot), "50f74ca0-0000-4000-8000-%012x\n", host);
        text_file(dir, name, boot);
    }
}

int sysfs_make(const char *dir, bool has_bus)
{
    const struct shm_conf *conf = &shm.head->conf;
    char hca[400], dev[400];

    boot_files(dir);
    folder("%s/class", dir);
    folder("%s/class/infiniband", dir);
    folder("%s/class/infiniband_verbs", dir);
    folder("%s/dev", dir);
    snprintf(dev, sizeof(dev), "%s/dev", dir);
    for (uint32_t h = 0; h < conf->hcas && !failed; h++) {
        char name[32], device[420];

        snprintf(hca, sizeof(hca), "%s/class/infiniband/softhca%u", dir, h);
        folder("%s", hca);
        folder("%s/class/infiniband_verbs/uverbs%u", dir, h);
        folder("%s/device", hca);
        folder("%s/ports", hca);
        snprintf(device, sizeof(device), "%s/device", hca);
        text_file(device, "numa_node", "-1\n");
        if (has_bus) {
            folder("%s/subsystem", device);
        }
        snprintf(name, sizeof(name), "uverbs%u", h);
        text_file(dev, name, "");
        for (uint32_t p = 0; p < conf->ports; p++) {
            port_files(hca, &shm.ports[h * conf->ports + p]);
        }
    }
    return failed ? -1 : 0;
}
