#include "job/site.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/params.h"
#include "job/say.h"

bool ibshift_site_file(const char *name, char *path, size_t size)
{
    return ibshift_params.site[0] != '\0' &&
           (size_t)snprintf(path, size, "%s/%s", ibshift_params.site, name) < size &&
           0 == access(path, F_OK);
}

bool ibshift_site_may_open(const char *path, char *why, size_t size)
{
    struct stat info;

    if (0 != stat(path, &info) || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
        return true;
    }
    snprintf(why, size, "%.200s: not a file, but a pipe or a device", path);
    return false;
}

bool ibshift_site_switched_off(char *why, size_t size)
{
    char path[PATH_MAX], reason[256] = "";
    FILE *file;

    if (!ibshift_site_file("off", path, sizeof(path))) {
        return false;
    }
    file = ibshift_site_may_open(path, reason, sizeof(reason)) ? fopen(path, "re") : NULL;
    if (file != NULL) {
        if (fgets(reason, sizeof(reason), file) != NULL) {
            reason[strcspn(reason, "\r\n")] = '\0';
        }
        fclose(file);
    }
    snprintf(why, size, "switched off by %.100s%s%.120s", path, reason[0] != '\0' ? ": " : "",
             reason);
    return true;
}

void ibshift_site_check(void)
{
    char which[256], path[PATH_MAX];

    if (ibshift_params.fabric[0] == '\0' && !ibshift_site_file("fabric", path, sizeof(path)) &&
        strcmp(ibshift_params.order, "auto") != 0 && strcmp(ibshift_params.order, "rank") != 0) {
        snprintf(which, sizeof(which),
                 "coll_ibshift_order = %.100s: there is no coll_ibshift_fabric to order",
                 ibshift_params.order);
        ibshift_help_once_a_job("contradiction", which, "without it");
    }
}
