/* A process that is not of the job: it knows the addresses of the ranks, and sends them datagrams. They are ignored. */
#include <stdlib.h>
#include <string.h>

#include "net/verbs/device.h"
#include "net/verbs/hello.h"
#include "net/verbs/verbs.h"
#include "scheduler.h"
#include "story.h"

enum { DATAGRAMS = 60, SIZE = 256 };

struct stranger {
    struct ibshift_verbs *verbs;
    struct ibv_mr *mr;
    uint8_t *data;
    uint64_t random;
};

static uint64_t below(struct stranger *s, uint64_t bound)
{
    return program_random(&s->random) % bound;
}

static bool rise(struct stranger *s, uint32_t qkey)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = s->verbs->ports[0].pkey_index,
                               .port_num = s->verbs->ports[0].number,
                               .qkey = qkey};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
    struct ibv_qp *qp = s->verbs->ud_qp;

    return ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) ==
               0 &&
           ibv_modify_qp(qp, &rtr, IBV_QP_STATE) == 0 &&
           ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0;
}

/* Mostly one of ours in all but what a stranger cannot know, or whence it comes. */
static uint32_t write_one(struct stranger *s, const struct ibshift_verbs_blob *to, int peer,
                          int ranks)
{
    int from = (int)below(s, (uint64_t)ranks + 1);
    struct ibshift_verbs_blob of;
    struct ibshift_hello hello;
    uint32_t length = sizeof(hello);

    for (size_t i = 0; i < sizeof(hello); i++) {
        ((uint8_t *)&hello)[i] = (uint8_t)program_random(&s->random);
    }
    hello.kind = (uint8_t)(1 + below(s, 5));
    hello.flags &= 3;
    hello.from_peer = (uint32_t)from;
    hello.to_peer = (uint32_t)peer;
    hello.rails = (uint8_t)below(s, IBSHIFT_PORTS_MAX + 1);
    hello.path &= IBSHIFT_PATH_MAX;
    hello.status = -(int32_t)below(s, 130);
    hello.word_key = (uint32_t)below(s, 8);
    for (int i = 0; i < IBSHIFT_PORTS_MAX; i++) {
        hello.rail[i].qpn &= 0xffffff;
        hello.rail[i].psn &= 0xffffff;
    }
    if (below(s, 4) != 0) {
        hello.to_incarnation = to->incarnation;
    }
    if (below(s, 4) != 0 && from < ranks && replay_card(from)->address_size != 0 &&
        ibshift_verbs_blob_decode(replay_card(from)->address, replay_card(from)->address_size,
                                  &of) == 0) {
        hello.from_incarnation = of.incarnation;
    }
    ibshift_hello_encode(&hello, s->data);
    if (below(s, 4) == 0) {
        s->data[below(s, length)] ^= (uint8_t)(1u << below(s, 8));
        length = (uint32_t)below(s, SIZE);
    }
    return length;
}

static void send_one(struct stranger *s, int peer, int ranks)
{
    const struct replay_card *card = replay_card(peer);
    struct ibshift_verbs_blob to;
    struct ibv_ah *ah;
    struct ibv_wc wc;

    if (card->address_size == 0 ||
        ibshift_verbs_blob_decode(card->address, card->address_size, &to) != 0) {
        return;
    }
    struct ibv_ah_attr attr = {
        .dlid = to.address[0].lid, .port_num = s->verbs->ports[0].number, .is_global = 1};
    attr.grh.sgid_index = s->verbs->ports[0].gid_index;
    attr.grh.hop_limit = 64;
    memcpy(attr.grh.dgid.raw, to.address[0].gid, 16);
    ah = ibv_create_ah(s->verbs->devices[0].pd, &attr);
    if (ah == NULL) {
        return;
    }
    struct ibv_sge sge = {
        .addr = (uintptr_t)s->data, .length = write_one(s, &to, peer, ranks), .lkey = s->mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge,
              .num_sge = 1,
              .opcode = IBV_WR_SEND,
              .send_flags = IBV_SEND_SIGNALED,
              .wr.ud = {.ah = ah, .remote_qpn = to.ud_qpn, .remote_qkey = to.ud_qkey}};

    story_count(COUNT_DATAGRAMS, 1);
    if (ibv_post_send(s->verbs->ud_qp, &wr, &bad) == 0) {
        while (ibv_poll_cq(s->verbs->ud_cq, 1, &wc) == 0) {
            replay_sleep(1000);
        }
    }
    ibv_destroy_ah(ah);
}

__attribute__((visibility("default"))) replay_rank_main replay_stranger;

void replay_stranger(int self)
{
    struct ibshift_verbs_options ports = {.max_ports = 1, .gid_index = -1};
    struct stranger s = {.random = replay_program()->seed ^ 0x9fb21c651e98df25};
    char error[256];

    (void)self;
    if (ibshift_verbs_open(&ports, &s.verbs, error, sizeof(error)) != 0) {
        return;
    }
    s.data = calloc(1, SIZE);
    s.mr = s.data == NULL
               ? NULL
               : ibv_reg_mr(s.verbs->devices[0].pd, s.data, SIZE, IBV_ACCESS_LOCAL_WRITE);
    if (s.mr != NULL && rise(&s, s.verbs->blob.ud_qkey)) {
        for (int i = 0; i < DATAGRAMS; i++) {
            replay_sleep(below(&s, 1ull << below(&s, 22)));
            send_one(&s, (int)below(&s, (uint64_t)replay_program()->ranks),
                     replay_program()->ranks);
        }
    }
    if (s.mr != NULL) {
        ibv_dereg_mr(s.mr);
    }
    free(s.data);
    ibshift_verbs_close(s.verbs);
}
