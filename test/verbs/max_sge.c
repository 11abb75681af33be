/* Gathering and scattering keep the order of the list; a longer list than agreed is refused. */
#include "vt.h"

enum { WANTED = 4, PIECE = 100 };

/* Pieces that lie backwards in memory, with gaps. */
static void list_pieces(struct vt_side *side, struct ibv_sge *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        list[i] = (struct ibv_sge){.addr = (uintptr_t)side->buf + (n - 1 - i) * 2 * PIECE,
                                   .length = PIECE,
                                   .lkey = side->mr->lkey};
    }
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "lists of pieces are taken in order, up to max_sge");
    struct vt_conf conf = vt_conf();
    conf.sge = WANTED;
    vt_connect(&p, &conf);
    uint32_t send_max = p.a.cap.max_send_sge, recv_max = p.b.cap.max_recv_sge;
    VT_CHECK(send_max >= WANTED && recv_max >= WANTED, "asked for %d pieces, got %u and %u", WANTED,
             send_max, recv_max);
    struct ibv_sge list[256];
    VT_CHECK(send_max < 256 && recv_max < 256, "more than 255 pieces granted");

    vt_fill(p.a.buf, VT_BUF, 1);
    list_pieces(&p.b, list, WANTED);
    struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = list, .num_sge = WANTED}, *bad_recv;
    VT_OK(ibv_post_recv(p.b.qp, &recv, &bad_recv));
    struct ibv_sge source[WANTED];
    list_pieces(&p.a, source, WANTED);
    struct ibv_send_wr send = {.wr_id = 2,
                               .sg_list = source,
                               .num_sge = WANTED,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad_send;
    VT_OK(ibv_post_send(p.a.qp, &send, &bad_send));
    VT_WC(p.a.scq, 2, IBV_WC_SUCCESS);
    struct ibv_wc wc = VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);
    VT_CHECK(wc.byte_len == WANTED * PIECE, "expected %d bytes, got %u", WANTED * PIECE,
             wc.byte_len);
    for (int i = 0; i < WANTED; i++) {
        VT_CHECK(!memcmp(p.a.buf + i * 2 * PIECE, p.b.buf + i * 2 * PIECE, PIECE),
                 "piece %d: expected the bytes sent, got others", i);
        VT_CHECK(p.b.buf[i * 2 * PIECE + PIECE] == 0, "expected the gaps untouched");
    }

    list_pieces(&p.a, list, send_max + 1);
    send.sg_list = list;
    send.num_sge = (int)send_max + 1;
    VT_REFUSED(ibv_post_send(p.a.qp, &send, &bad_send));
    list_pieces(&p.b, list, recv_max + 1);
    recv.num_sge = (int)recv_max + 1;
    VT_REFUSED(ibv_post_recv(p.b.qp, &recv, &bad_recv));
    vt_expect_alive(&p);
    vt_disconnect(&p);
    return vt_close();
}
