#include "group/report.h"

#include <errno.h>
#include <stdio.h>

#include "exec/badge.h"
#include "job/say.h"

enum { NAME = 40, PEER_TEXT = 768, CAUSE_TEXT = 512, NAMES_MOST = 16 };

static uint32_t name_of(const struct ibshift_op *op, uint32_t rank)
{
    return op->params.names == NULL ? rank : op->params.names[rank];
}

/* Of the communicator; this one, for one that is none of its. */
static uint32_t rank_of_peer(const struct ibshift_group *group, uint32_t peer)
{
    uint32_t rank = 0;

    while (rank < group->size && group->peers[rank] != peer) {
        rank++;
    }
    return rank < group->size ? rank : group->rank;
}

/* Each communicator has it once: after that it has failed. */
static void report_unlike(const struct ibshift_group *group, const struct ibshift_op *op,
                          const struct ibshift_unlike *unlike, uint32_t rank, const char *text)
{
    char key[IBSHIFT_CALL_NUMBER], here[NAME], there[NAME];

    ibshift_call_number(op->params.comm, unlike->seq, key, sizeof(key));
    ibshift_help("collective-unlike", group->name, key,
                 ibshift_badge_name(unlike->ours, here, sizeof(here)), name_of(op, op->params.rank),
                 ibshift_teller_host(), ibshift_badge_name(unlike->theirs, there, sizeof(there)),
                 ibshift_badge_is_like(unlike->ours, unlike->theirs)
                     ? " with another root, operator, type or count"
                     : "",
                 rank, text);
}

static void bytes_text(uint32_t word, char text[NAME])
{
    snprintf(text, NAME, "%s%u", word == UINT32_MAX ? "at least " : "", word);
}

void ibshift_report_counts(const struct ibshift_group *group, uint32_t seq,
                           const struct ibshift_mixed_unlike *unlike, const char *name)
{
    char key[IBSHIFT_CALL_NUMBER], sent[NAME], awaited[NAME];

    ibshift_call_number(group->id, seq, key, sizeof(key));
    bytes_text(unlike->sent, sent);
    bytes_text(unlike->awaited, awaited);
    ibshift_help("counts-unlike", name, group->name, key, unlike->from, sent, unlike->to, awaited,
                 group->rank, ibshift_teller_host());
}

/* Where the deadline has ended an opened call, the rank that it names may wait itself: for one of those that it would tell of. */
static void cause_text(const struct ibshift_op *op, char text[CAUSE_TEXT])
{
    uint32_t count = op->lacked;
    size_t at = (size_t)snprintf(text, CAUSE_TEXT, "%s%s", ibshift_cause_text(op->status),
                                 count > 1 ? "; or it waits itself, for one of the ranks" : "");

    for (uint32_t i = 1; i < count && i <= NAMES_MOST && at < CAUSE_TEXT; i++) {
        uint32_t rank = (op->params.rank + op->lacked_first + i) % op->params.plan.ranks;

        at += (size_t)snprintf(text + at, CAUSE_TEXT - at, "%s %u", i > 1 ? "," : "",
                               name_of(op, rank));
    }
    if (count > NAMES_MOST + 1 && at < CAUSE_TEXT) {
        snprintf(text + at, CAUSE_TEXT - at, " and %u more", count - 1 - NAMES_MOST);
    }
}

void ibshift_report(struct ibshift_group *group, struct ibshift_net *net,
                    const struct ibshift_op *op, const char *name)
{
    struct ibshift_unlike *unlike = &group->ledger.unlike;
    uint32_t peer = op->failed_peer, rank = rank_of_peer(group, peer);
    char text[PEER_TEXT] = "(this rank itself)", cause[CAUSE_TEXT], key[IBSHIFT_CALL_NUMBER];

    if (rank != group->rank) {
        ibshift_net_describe(net, peer, text, sizeof(text));
    }
    if (op->status != -EBADMSG && op->status != -EMSGSIZE && op->status != -ECONNABORTED) {
        ibshift_raise(IBSHIFT_EVENT_LOST,
                      (struct ibshift_event){.group = group->id,
                                             .collective = (int32_t)op->params.alg->collective,
                                             .value = (int32_t)rank,
                                             .detail = -op->status});
    }
    if (op->status == -EBADMSG && unlike->ours != unlike->theirs) {
        report_unlike(group, op, unlike, rank, text);
        unlike->theirs = unlike->ours;
        return;
    }
    /* Two calls that do not match are said once: what else fails by them has no other cause. */
    if ((op->status == -EBADMSG && unlike->ours != 0) || !ibshift_is_news(peer, op->status)) {
        return;
    }
    if (op->status == -EMSGSIZE) {
        ibshift_call_number(op->params.comm, op->seq, key, sizeof(key));
        ibshift_help("collective-mismatch", name, group->name, key, ibshift_teller_host(),
                     name_of(op, op->params.rank), rank, text);
    } else if (op->status == -ECONNABORTED) {
        ibshift_help("collective-given-up", name, group->name, ibshift_teller_host(),
                     name_of(op, op->params.rank), rank, ibshift_cause_text(op->status), text);
    } else {
        cause_text(op, cause);
        ibshift_help("collective-failed", name, group->name, ibshift_teller_host(),
                     name_of(op, op->params.rank), rank, cause, text);
    }
}
