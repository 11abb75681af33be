/*
 * Channels: a file descriptor that poll(2) sees readable while events wait, across processes.
 * The events are in shared memory; the descriptor is a datagram socket bound in the run's folder,
 * and holds at most one datagram, sent when the first event comes and read when the last one goes.
 */
#ifndef SOFTHCA_CHAN_H
#define SOFTHCA_CHAN_H

#include "shm/shm.h"

int chan_open(uint32_t *index, int *fd, uint32_t host, uint32_t hca, bool is_async);
void chan_close(uint32_t index, int fd);
void chan_free(uint32_t index); /* what chan_open left in shared memory */

/* Takes the channel's lock, to be dropped by lock_drop(). */
void chan_lock(struct shm_chan *chan);

/* A completion event of `cq`; its lock is held. */
void chan_signal_cq(uint32_t chan, uint32_t cq);
/* Takes the unread events of a dying completion queue back. */
void chan_forget_cq(uint32_t chan, uint32_t cq);
/* An asynchronous event: `element` is the owner's object, `port` the port of a port event. */
void chan_signal_async(uint32_t chan, uint32_t type, uint64_t element, uint32_t port);
/* Takes the unread events about a dying object back. */
void chan_forget_element(uint32_t chan, uint64_t element);

#endif
