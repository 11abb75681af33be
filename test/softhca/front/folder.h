/*
 * The run's folder, and the shared file in it. Runs start and end beside each other in one base
 * folder, of one user or of many. What is seen there as `shm` is locked by its runner and has its
 * magic from the first moment on, so a sweeper takes away only what has both owner and magic of a
 * run of this user's, and no lock any more.
 */
#ifndef SOFTHCA_FOLDER_H
#define SOFTHCA_FOLDER_H

#include <stdint.h>

/* Removes what dead runs left in `base`, makes a folder and maps its shared file of `gib` GiB. The path is then
   in shm.head->dir. 0, or -1 after a message. */
int folder_make(const char *base, uint32_t gib);

/* Removes the folder: by the runner, or by its guard. Without one nothing happens. */
void folder_remove(void);

#endif
