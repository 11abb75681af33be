/* Fills the wire's part of the shared file, and says afterwards what the links carried. */
#ifndef SOFTHCA_WIRE_MAKE_H
#define SOFTHCA_WIRE_MAKE_H

#include "front/place.h"
#include "front/profile.h"

/* After the ports have been made. 0, or a negative errno after a message. */
int wire_make(const struct profile *profile, const struct options *o, const struct place *place);

/* Finds the profile and checks what goes with it; *profile NULL: no wire. */
int wire_choose(const struct options *o, const struct profile **profile);

/* `path`: "-" for the standard output. 0, or a negative errno after a message. */
int wire_report(const char *path, const struct options *o, const struct profile *profile,
                const struct place *place);

/* The same, of links over time. */
int wire_timeline(const char *path, const struct options *o, const struct profile *profile,
                  const struct place *place);

uint32_t wire_links(const struct place *place);
void wire_link_name(const struct place *place, uint32_t link, char *text, size_t size);

#endif
