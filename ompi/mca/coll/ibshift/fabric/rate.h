/* Link rates: "4xQDR" and what else the tools write. */
#ifndef IBSHIFT_FABRIC_RATE_H
#define IBSHIFT_FABRIC_RATE_H

#include <stddef.h>
#include <stdint.h>

/* Mb/s on the wire of "<width>x<generation>", 0 if the text is not one. */
uint32_t ibshift_rate_parse(const char *text);
/* "4xQDR" of 40000; "12.5 Gb/s" where no name fits. */
void ibshift_rate_name(uint32_t rate, char *text, size_t size);

#endif
