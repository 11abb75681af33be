/*
 * The end of a connection: what broke it is written down, its queue pairs are flushed, and only
 * then do the messages that the device might still touch end.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs/private.h"

enum { TEXT_SIZE = 256 };

static const uint64_t drain_limit = 2000 * 1000 * 1000ull; /* ns */

/* Whether the device may still read or write the message's buffer. */
static int is_with_device(const struct ibshift_note *note)
{
    if (note->kind == IBSHIFT_NOTE_RECV) {
        return note->is_granted;
    }
    return note->kind == IBSHIFT_NOTE_LONG && note->done > 0 && !note->is_copied;
}

static void end_list(struct ibshift_net_verbs *nv, struct ibshift_notes *list, int status, int all)
{
    struct ibshift_note *next;

    for (struct ibshift_note *n = list->first; n != NULL; n = next) {
        next = n->next;
        if (all || !is_with_device(n)) {
            ibshift_nv_note_end(nv, n, status);
        }
    }
}

static void end_notes(struct ibshift_net_verbs *nv, struct ibshift_connection *c, int all)
{
    end_list(nv, &c->ready, c->status, all);
    end_list(nv, &c->waiting, c->status, all);
    end_list(nv, &c->slow, c->status, all);
    end_list(nv, &c->resting, c->status, all);
}

/* The device is done with this connection. */
static void bury(struct ibshift_net_verbs *nv, struct ibshift_connection *c)
{
    ibshift_nv_rails_destroy(nv, c);
    c->state = IBSHIFT_CONNECTION_DEAD;
    end_notes(nv, c, 1);
    ibshift_nv_ring_free(c);
    nv->slot_stock += c->in.slots - c->in.slots_arrived;
    nv->quota_stock += c->in.quota_window;
    c->in.slots = c->in.slots_arrived;
    c->in.quota_window = 0;
}

static void silence(struct ibshift_net_verbs *nv, struct ibshift_connection *c)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    c->drained_by = ibshift_net_now(&nv->net) + drain_limit;
    for (int i = 0; i < c->rails; i++) {
        struct ibshift_rail *rail = &c->rail[i];
        struct ibv_send_wr *bad, marker = {.opcode = IBV_WR_RDMA_WRITE,
                                           .send_flags = IBV_SEND_SIGNALED,
                                           .wr_id = ibshift_wr_id(rail, IBSHIFT_WR_MARKER)};
        if (ibv_modify_qp(rail->qp, &attr, IBV_QP_STATE) == 0 &&
            ibv_post_send(rail->qp, &marker, &bad) == 0) {
            c->markers++;
        }
    }
}

void ibshift_nv_break(struct ibshift_net_verbs *nv, struct ibshift_connection *c, int status,
                      const char *format, ...)
{
    va_list args;

    if (c->status != 0) {
        return;
    }
    c->text = malloc(TEXT_SIZE);
    if (c->text != NULL) {
        va_start(args, format);
        vsnprintf(c->text, TEXT_SIZE, format, args);
        va_end(args);
    }
    __atomic_store_n(&c->status, status, __ATOMIC_RELEASE);
    if (c->state == IBSHIFT_CONNECTION_SHAKING) {
        nv->shaking--;
    }
    if (c->state == IBSHIFT_CONNECTION_IDLE) {
        bury(nv, c);
        return;
    }
    ibshift_nv_bye(nv, c);
    c->state = IBSHIFT_CONNECTION_DRAINING;
    nv->draining++;
    silence(nv, c);
    end_notes(nv, c, 0);
}

/* Called when a completion queue was found empty: what a dead connection received has been seen. */
void ibshift_nv_drain_poll(struct ibshift_net_verbs *nv)
{
    uint64_t now = ibshift_net_now(&nv->net);

    for (uint32_t i = 0; i < nv->connection_count && nv->draining > 0; i++) {
        struct ibshift_connection *c = nv->connections[i];
        if (c->state == IBSHIFT_CONNECTION_DRAINING && (c->markers == 0 || now > c->drained_by)) {
            nv->draining--;
            bury(nv, c);
        }
    }
    ibshift_nv_serve(nv);
}

static const char *advice(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return "the process there has died, or a link or switch on the way is down (its output; "
               "ibqueryerrors, iblinkinfo)";
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return "the process there does not take messages (is it stopped?)";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
        return "the process there gave the memory or the connection up";
    case IBV_WC_LOC_PROT_ERR:
        return "a buffer was unmapped while it was in use";
    default:
        return "see the device's counters and the kernel's log";
    }
}

void ibshift_nv_wc_error(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                         const struct ibv_wc *wc)
{
    int status = -EIO;

    if (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_RNR_RETRY_EXC_ERR) {
        status = -ETIMEDOUT;
    } else if (wc->status == IBV_WC_REM_ACCESS_ERR || wc->status == IBV_WC_REM_INV_REQ_ERR ||
               wc->status == IBV_WC_REM_OP_ERR || wc->status == IBV_WC_WR_FLUSH_ERR) {
        status = -ECONNRESET;
    }
    ibshift_nv_break(nv, c, status, "%s (status %d, vendor 0x%x): %s",
                     ibv_wc_status_str(wc->status), (int)wc->status, wc->vendor_err,
                     advice(wc->status));
}

static int is_of(const struct ibshift_note *note, uint32_t comm, uint32_t seq)
{
    return note->kind != IBSHIFT_NOTE_CONTROL && note->match.key.comm == comm &&
           note->match.key.seq == seq;
}

/* Ends what can end now, marks the rest; returns whether a buffer is granted or half written. */
static int cancel_list(struct ibshift_net_verbs *nv, struct ibshift_notes *list, uint32_t comm,
                       uint32_t seq)
{
    struct ibshift_connection *c = list->first != NULL ? list->first->connection : NULL;
    struct ibshift_note *next;
    int must_break = 0, held = 0;

    for (struct ibshift_note *n = list->first; n != NULL; n = next) {
        next = n->next;
        if (!is_of(n, comm, seq)) {
            continue;
        }
        if (is_with_device(n)) {
            int is_written = n->kind == IBSHIFT_NOTE_LONG && n->done == n->length;
            must_break |= !is_written;
            n->is_cancelled = (uint8_t)!is_written;
            continue;
        }
        held += n->kind == IBSHIFT_NOTE_HELD;
        ibshift_nv_note_end(nv, n, -ECANCELED);
    }
    if (held > 0) {
        ibshift_nv_held_ended(nv, c); /* may find the connection broken, and end all notes */
    }
    return must_break;
}

void ibshift_nv_cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);

    ibshift_given_up_add_here(&nv->given_up, comm, seq);
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];
        int must_break = cancel_list(nv, &c->ready, comm, seq);
        must_break |= cancel_list(nv, &c->waiting, comm, seq);
        must_break |= cancel_list(nv, &c->slow, comm, seq);
        must_break |= cancel_list(nv, &c->resting, comm, seq);
        if (must_break) {
            ibshift_nv_break(nv, c, -ECONNRESET,
                             "collective %u on communicator %u was given up "
                             "while the peer could write into its buffer",
                             seq, comm);
        }
    }
}
