#ifndef SOFTHCA_SYSFS_H
#define SOFTHCA_SYSFS_H

#include <stdbool.h>

/* Makes <dir>/class/infiniband... and <dir>/dev for programs that look there; devices with a bus
   are hardware to them. 0 or -1 after a message. */
int sysfs_make(const char *dir, bool has_bus);

#endif
