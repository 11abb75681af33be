#include "choose/tuned.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "choose/digest.h"

static const char prefix[] = "costs-";

struct ibshift_levels ibshift_levels_typical(void)
{
    return (struct ibshift_levels){.hardware = ibshift_model_typical,
                                   .software = ibshift_model_software,
                                   .node = ibshift_model_node};
}

void ibshift_levels_take(struct ibshift_levels *levels, const struct ibshift_costs *costs)
{
    if (costs->has_far) {
        levels->hardware = levels->software = costs->far;
    }
    if (costs->has_near) {
        levels->node = costs->near;
    }
}

void ibshift_levels_limit(struct ibshift_levels *levels, size_t limit)
{
    struct ibshift_model *const all[] = {&levels->hardware, &levels->software, &levels->node};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        all[i]->at_once = all[i]->at_once > 0 ? all[i]->at_once : (double)limit;
    }
}

uint64_t ibshift_levels_digest(const struct ibshift_levels *levels)
{
    uint64_t sum = ibshift_digest_model(IBSHIFT_DIGEST, &levels->hardware);

    return ibshift_digest_model(ibshift_digest_model(sum, &levels->software), &levels->node);
}

void ibshift_tuned_name(const struct ibshift_made *made, char *name, size_t size)
{
    snprintf(name, size, "%s%s-%s-%s", prefix, made->device, made->speed, made->ompi);
    for (char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && *c != '.') {
            *c = '-';
        }
    }
}

bool ibshift_tuned_folder(char *folder, size_t size)
{
    const char *home = getenv("HOME");

    return home != NULL && home[0] == '/' &&
           (size_t)snprintf(folder, size, "%s/.ibshift", home) < size;
}

static bool is_costs(const char *name)
{
    return strncmp(name, prefix, sizeof(prefix) - 1) == 0 && strchr(name, '~') == NULL;
}

static enum ibshift_tuned look(const char *folder, const struct ibshift_made *made, char *path,
                               size_t size)
{
    enum ibshift_tuned found = IBSHIFT_TUNED_NONE;
    char name[4 * IBSHIFT_MADE_TEXT];
    struct dirent *entry;
    DIR *dir;

    ibshift_tuned_name(made, name, sizeof(name));
    if ((size_t)snprintf(path, size, "%s/%s", folder, name) >= size) {
        return IBSHIFT_TUNED_NONE;
    }
    if (access(path, R_OK) == 0) {
        return IBSHIFT_TUNED_FOUND;
    }
    dir = opendir(folder);
    while (found == IBSHIFT_TUNED_NONE && dir != NULL && (entry = readdir(dir)) != NULL) {
        if (is_costs(entry->d_name) &&
            (size_t)snprintf(path, size, "%s/%s", folder, entry->d_name) < size) {
            found = IBSHIFT_TUNED_STALE;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return found;
}

enum ibshift_tuned ibshift_tuned_find(const char *site, const struct ibshift_made *made, char *path,
                                      size_t size)
{
    char user[PATH_MAX] = "", stale[PATH_MAX];
    enum ibshift_tuned found = IBSHIFT_TUNED_NONE;

    if (ibshift_tuned_folder(user, sizeof(user))) {
        found = look(user, made, path, size);
    }
    if (found == IBSHIFT_TUNED_FOUND || site[0] == '\0') {
        return found;
    }
    if (found == IBSHIFT_TUNED_STALE) {
        snprintf(stale, sizeof(stale), "%s", path);
    }
    if (look(site, made, path, size) == IBSHIFT_TUNED_FOUND) {
        return IBSHIFT_TUNED_FOUND;
    }
    if (found == IBSHIFT_TUNED_STALE) {
        snprintf(path, size, "%s", stale);
        return found;
    }
    return look(site, made, path, size);
}

static void add(const char *what, const char *theirs, const char *ours, const char *path,
                char *words, size_t size)
{
    size_t length = strlen(words);

    if (theirs[0] == '\0' || strcmp(theirs, ours) == 0) {
        return;
    }
    if (length == 0) {
        length = (size_t)snprintf(words, size, "%.100s was measured with ", path);
    } else {
        length += (size_t)snprintf(words + length, size - length, ", ");
    }
    if (length < size) {
        snprintf(words + length, size - length, "%s %s in place of %s", what, theirs,
                 ours[0] != '\0' ? ours : "none");
    }
}

void ibshift_tuned_differ(const struct ibshift_made *file, const struct ibshift_made *own,
                          const char *path, char *words, size_t size)
{
    words[0] = '\0';
    add("device", file->device, own->device, path, words, size);
    add("speed", file->speed, own->speed, path, words, size);
    add("Open MPI", file->ompi, own->ompi, path, words, size);
}

void ibshift_tuned_doubt(const struct ibshift_made *file, const struct ibshift_made *own,
                         const char *path, char *words, size_t size)
{
    words[0] = '\0';
    add("firmware", file->firmware, own->firmware, path, words, size);
    add("ibshift", file->ibshift, own->ibshift, path, words, size);
}

struct ibshift_made ibshift_tuned_made(const char *device, const char *firmware, uint32_t mbps,
                                       int major, int minor, int release)
{
    struct ibshift_made made = {.ibshift = IBSHIFT_TUNED_SINCE};

    snprintf(made.firmware, sizeof(made.firmware), "%s", firmware);
    snprintf(made.device, sizeof(made.device), "%s", device);
    snprintf(made.ompi, sizeof(made.ompi), "%d.%d.%d", major, minor, release);
    if (mbps > 0) {
        snprintf(made.speed, sizeof(made.speed), "%u Mb/s", mbps);
    }
    return made;
}
