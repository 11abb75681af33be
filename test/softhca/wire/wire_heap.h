/* The net's events, earliest first: a binary heap of messages by their `when`. */
#ifndef SOFTHCA_WIRE_HEAP_H
#define SOFTHCA_WIRE_HEAP_H

#include "wire/wire_net.h"

/* Puts a message in, or where it belongs after its `when` has changed. */
void wire_heap_put(struct wire_net *net, uint32_t id);
void wire_heap_drop(struct wire_net *net, uint32_t id);

#endif
