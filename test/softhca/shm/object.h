#ifndef SOFTHCA_OBJECT_H
#define SOFTHCA_OBJECT_H

#include <stdint.h>

/* Frees all shared objects of a process: at its end, or by others when it died. */
void object_free_all(uint32_t proc);

#endif
