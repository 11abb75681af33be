/* What messages cost, by what they pass; and measured parameter files that jobs find by themselves: in a folder of the user's or of the
 * administrator's, under a name that says what they were measured on. */
#ifndef IBSHIFT_CHOOSE_TUNED_H
#define IBSHIFT_CHOOSE_TUNED_H

#include <limits.h>
#include <stdint.h>

#include "choose/param.h"

/* The first release whose measures mean what they mean now: another one where the probes or the model change. */
#define IBSHIFT_TUNED_SINCE "1.0.0"

/* A device on a bus, one in software, shared memory. */
struct ibshift_levels {
    struct ibshift_model hardware, software, node;
};

struct ibshift_levels ibshift_levels_typical(void);

/* A level that the file does not have stays as it is; a file that nobody measured, of one level
 * without a heading, speaks for all. */
void ibshift_levels_take(struct ibshift_levels *levels, const struct ibshift_costs *costs);

/* S where no file says it. */
void ibshift_levels_limit(struct ibshift_levels *levels, size_t limit);

uint64_t ibshift_levels_digest(const struct ibshift_levels *levels);

/* What this process would measure on; 0 Mb/s: without a speed. */
struct ibshift_made ibshift_tuned_made(const char *device, const char *firmware, uint32_t mbps,
                                       int major, int minor, int release);

/* "costs-mlx5-15b3-101b-200000-Mb-s-4.1.4": from device, speed and ompi. */
void ibshift_tuned_name(const struct ibshift_made *made, char *name, size_t size);

/* The user's folder; false: there is none. */
bool ibshift_tuned_folder(char *folder, size_t size);

enum ibshift_tuned {
    IBSHIFT_TUNED_NONE,
    IBSHIFT_TUNED_FOUND, /* path: the file */
    IBSHIFT_TUNED_STALE, /* path: one that was measured on something else */
};

/* Looks into the user's folder, then into the administrator's ("": there is none). One that was
 * measured on something else is better than nothing to tell of. */
enum ibshift_tuned ibshift_tuned_find(const char *site, const struct ibshift_made *made, char *path,
                                      size_t size);

/* "PATH was measured with speed 5 Mb/s in place of 6 Mb/s": device, speed and Open MPI; empty: none
 * differs, or the file does not say. */
void ibshift_tuned_differ(const struct ibshift_made *file, const struct ibshift_made *own,
                          const char *path, char *words, size_t size);

/* The same of firmware and ibshift, whose measures are used, but said to be of another version. */
void ibshift_tuned_doubt(const struct ibshift_made *file, const struct ibshift_made *own,
                         const char *path, char *words, size_t size);

/* Where the prices of a job come from: the file that the user gives, else what was measured here, else typical values. */
struct ibshift_source {
    struct ibshift_levels given, measured; /* given: or typical */
    bool is_given, is_stale;
    struct ibshift_made made; /* what the given file says of itself */
    uint64_t digest;          /* of the measured ones; 0: there are none */
    char path[PATH_MAX];
    char note[512]; /* why the measured ones are not used, or doubtful; empty: they are */
};

/* path: what the user gives, or "". limit: S where no file says it. 0, or a negative errno with an error: then they are typical. */
int ibshift_source_open(struct ibshift_source *source, const char *path, size_t limit, char *error);
/* Looks for a file of what was measured; false: there is none, or one was given. True: source->path is to be read by measure(),
 * which does not use what was measured on something else, as a file that was copied to this name. */
bool ibshift_source_find(struct ibshift_source *source, const char *site, const char *given,
                         const struct ibshift_made *own);
int ibshift_source_measure(struct ibshift_source *source, const struct ibshift_made *own,
                           size_t limit, char *error);
void ibshift_source_words(const struct ibshift_source *source, const struct ibshift_model *model,
                          bool is_measured, char *text, size_t size);

#endif
