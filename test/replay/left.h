#ifndef IBSHIFT_REPLAY_LEFT_H
#define IBSHIFT_REPLAY_LEFT_H

#include "net/net.h"

/* Either may be NULL. */
void left_watch(struct ibshift_net *verbs, struct ibshift_net *node);
/* Fails the run when something has not come back. */
void left_check(bool has_failed);
/* Something has failed, or is refused, so that it may. */
bool left_is_excused(void);
/* Messages of the adapter are on the way, or something waits for them. */
bool left_is_any(void);
/* Of all connections, both ends, when nobody was disturbed and nothing is on the way. */
void left_compare(void);

#endif
