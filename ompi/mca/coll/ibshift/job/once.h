#ifndef IBSHIFT_JOB_ONCE_H
#define IBSHIFT_JOB_ONCE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this process is the one of the job on this host that says the text, whatever its numbers:
 * the first that has it to say, and that one again. */
bool ibshift_once_a_host(uint32_t job, const char *text);

#endif
