#ifndef SOFTHCA_SYSFS_H
#define SOFTHCA_SYSFS_H

/* Makes <dir>/class/infiniband... and <dir>/dev for programs that look there. 0 or -1 after a
   message. */
int sysfs_make(const char *dir);

#endif
