#ifndef IBSHIFT_REPLAY_STORY_H
#define IBSHIFT_REPLAY_STORY_H

/* What happened, in lines, and their hash: two runs of a seed have the same. */

#include <stdarg.h>
#include <stdint.h>

enum { STORY_LINE = 240 };

__attribute__((format(printf, 3, 0))) void story_add(uint64_t now, int rank, const char *format,
                                                     va_list args);
void story_mix(uint64_t value);
uint64_t story_hash(void);
void story_print(void);

#endif
