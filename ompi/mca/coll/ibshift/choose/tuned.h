/* Measured parameter files that jobs find by themselves: in a folder of the user's or of the
 * administrator's, under a name that says what they were measured on. */
#ifndef IBSHIFT_CHOOSE_TUNED_H
#define IBSHIFT_CHOOSE_TUNED_H

#include "choose/param.h"

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

/* Which of device, speed and Open MPI differ, in words; empty: none, or the file does not say. */
void ibshift_tuned_differ(const struct ibshift_made *file, const struct ibshift_made *own,
                          char *words, size_t size);

#endif
