/* The modelled hosts' HCAs and ports: written once by softhca-run before anything starts. */
#ifndef SOFTHCA_FABRIC_H
#define SOFTHCA_FABRIC_H

#include "front/place.h"

void fabric_make_ports(const struct place *place);

#endif
