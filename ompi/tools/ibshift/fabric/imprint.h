/* What a published file says of itself, for people. */
#ifndef IBSHIFT_FABRIC_IMPRINT_H
#define IBSHIFT_FABRIC_IMPRINT_H

#include "fabric/graph/fabric.h"

/* When it was published, how long that holds, and who manages the subnet, in words. */
void fabric_imprint_text(const struct ibshift_imprint *imprint, char *text, size_t size);

#endif
