#include "choose/tuned.h"

#include <ctype.h>
#include <glob.h>
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

/* The text has each field, once; the struct may have gaps. */
static uint64_t digest_model(uint64_t sum, const struct ibshift_model *model)
{
    char text[1024];
    int length = ibshift_model_format(model, text, sizeof(text));

    return ibshift_digest(sum, text, strnlen(text, (size_t)length));
}

uint64_t ibshift_levels_digest(const struct ibshift_levels *levels)
{
    uint64_t sum = digest_model(IBSHIFT_DIGEST, &levels->hardware);

    return digest_model(digest_model(sum, &levels->software), &levels->node);
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

/* One that is measured on something else: any of the folder's but those that are being written. */
static bool find_other(const char *folder, char *path, size_t size)
{
    char pattern[PATH_MAX];
    bool is_found = false;
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/%s*", folder, prefix);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) {
        return false;
    }
    for (size_t i = 0; i < found.gl_pathc && !is_found; i++) {
        is_found = strchr(found.gl_pathv[i] + strlen(folder), '~') == NULL &&
                   (size_t)snprintf(path, size, "%s", found.gl_pathv[i]) < size;
    }
    globfree(&found);
    return is_found;
}

enum ibshift_tuned ibshift_tuned_find(const char *site, const struct ibshift_made *made, char *path,
                                      size_t size)
{
    char user[PATH_MAX] = "", name[4 * IBSHIFT_MADE_TEXT];
    const char *const folders[] = {user, site};

    (void)ibshift_tuned_folder(user, sizeof(user));
    ibshift_tuned_name(made, name, sizeof(name));
    for (int i = 0; i < 2; i++) {
        if (folders[i][0] != '\0' &&
            (size_t)snprintf(path, size, "%s/%s", folders[i], name) < size &&
            access(path, R_OK) == 0) {
            return IBSHIFT_TUNED_FOUND;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (folders[i][0] != '\0' && find_other(folders[i], path, size)) {
            return IBSHIFT_TUNED_STALE;
        }
    }
    return IBSHIFT_TUNED_NONE;
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

int ibshift_source_open(struct ibshift_source *source, const char *path, size_t limit, char *error)
{
    struct ibshift_costs costs;
    int rc = 0;

    *source =
        (struct ibshift_source){.is_given = path[0] != '\0', .given = ibshift_levels_typical()};
    if (source->is_given) {
        rc = ibshift_costs_read(path, &costs, error);
    }
    if (source->is_given && rc == 0) {
        ibshift_levels_take(&source->given, &costs);
        source->made = costs.made;
    }
    ibshift_levels_limit(&source->given, limit);
    return rc;
}

bool ibshift_source_find(struct ibshift_source *source, const char *site, const char *given,
                         const struct ibshift_made *own)
{
    enum ibshift_tuned found;

    source->digest = 0;
    source->note[0] = '\0';
    if (source->is_given) {
        ibshift_tuned_differ(&source->made, own, given, source->note, sizeof(source->note));
        return false;
    }
    found = ibshift_tuned_find(site, own, source->path, sizeof(source->path));
    source->is_stale = found == IBSHIFT_TUNED_STALE;
    return found != IBSHIFT_TUNED_NONE;
}

int ibshift_source_measure(struct ibshift_source *source, const struct ibshift_made *own,
                           size_t limit, char *error)
{
    struct ibshift_costs costs;
    int rc = ibshift_costs_read(source->path, &costs, error);

    if (rc != 0) {
        return rc;
    }
    ibshift_tuned_differ(&costs.made, own, source->path, source->note, sizeof(source->note));
    if (source->is_stale || source->note[0] != '\0') {
        return 0;
    }
    ibshift_tuned_doubt(&costs.made, own, source->path, source->note, sizeof(source->note));
    source->measured = ibshift_levels_typical();
    ibshift_levels_take(&source->measured, &costs);
    source->measured.hardware.at_once = source->measured.software.at_once =
        0; /* as it is in this job */
    ibshift_levels_limit(&source->measured, limit);
    source->digest = ibshift_levels_digest(&source->measured);
    return 0;
}

void ibshift_source_words(const struct ibshift_source *source, const struct ibshift_model *model,
                          bool is_measured, char *text, size_t size)
{
    const char *what = source->is_given                   ? "as coll_ibshift_model says"
                       : &source->given.node == model     ? "typical for shared memory"
                       : &source->given.software == model ? "typical for a device in software"
                                                          : "typical for a device in hardware";

    if (is_measured) {
        snprintf(text, size, "as ibshift tune measured them, %.200s%s%s", source->path,
                 source->note[0] != '\0' ? "; " : "", source->note);
    } else if (source->digest != 0) {
        snprintf(text, size, "%s, for the ranks have different files of measured ones", what);
    } else {
        snprintf(text, size, "%s%s%s", what, source->note[0] != '\0' ? "; " : "", source->note);
    }
}
