/*
 * A program on the root's host that is none of the job sends to its multicast group: no broadcast is disturbed. It knows
 * all that such a program can know without listening: the group's GID and LID, as the software HCA names its first one on
 * InfiniBand, the Q_Key of the connection manager, and what datagrams look like. Rank 0 plays it.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

enum { QKEY = 0x01234567, LID = 0xc001, MANY_QPN = 0xffffff, MANY = 32, BYTES = 64 };

/* As net/cast/impl.h has it. */
struct head {
    uint64_t group;
    uint32_t from, number, key[3], length;
};

static struct ibv_qp *make_queue(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr is = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = MANY, .max_send_sge = 1, .max_inline_data = sizeof(struct head)}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    struct ibv_qp *qp = ibv_create_qp(pd, &is);

    CHECK(qp != NULL &&
              ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0,
          "there is no queue pair");
    attr.qp_state = IBV_QPS_RTR;
    CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "it does not receive");
    attr.qp_state = IBV_QPS_RTS;
    CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "it does not send");
    return qp;
}

/* The numbers that the root's next datagrams have: who takes these takes none of the root's. */
static void disturb(struct ibv_qp *qp, struct ibv_ah *ah, const uint8_t gid[16])
{
    for (uint32_t i = 0; i < MANY; i++) {
        struct head head = {.number = i};
        struct ibv_sge sge = {.addr = (uintptr_t)&head, .length = sizeof(head)};
        struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_SEND,
                                       .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
                                       .wr.ud = {ah, MANY_QPN, QKEY}};
        struct ibv_wc wc;

        memcpy(&head.group, gid + 8, sizeof(head.group));
        CHECK(ibv_post_send(qp, &wr, &bad) == 0, "datagram %u is not sent", i);
        while (ibv_poll_cq(qp->send_cq, 1, &wc) == 0) {
        }
        CHECK(wc.status == IBV_WC_SUCCESS, "datagram %u: %s", i, ibv_wc_status_str(wc.status));
    }
}

static void play_stranger(void)
{
    static const uint8_t gid[16] = {0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, [15] = 1};
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_ah_attr to = {.dlid = LID, .is_global = 1, .port_num = 1};

    memcpy(to.grh.dgid.raw, gid, sizeof(gid));
    disturb(make_queue(pd, ibv_create_cq(context, MANY, NULL, NULL, 0)), ibv_create_ah(pd, &to),
            gid);
    ibv_free_device_list(list);
}

int main(int argc, char **argv)
{
    unsigned char data[BYTES];
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 2 * MANY; i++) {
        memset(data, rank == 0 ? i : 0, sizeof(data));
        MPI_Bcast(data, sizeof(data), MPI_BYTE, 0, MPI_COMM_WORLD);
        CHECK(data[0] == i && data[BYTES - 1] == i, "broadcast %d is wrong", i);
        if (i == 0 && rank == 0) { /* there is a group now */
            play_stranger();
        }
    }
    MPI_Finalize();
    return 0;
}
