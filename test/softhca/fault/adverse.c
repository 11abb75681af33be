#include "fault/adverse.h"

#include <string.h>

enum { CHUNK_MAX = 4096, RUBBISH = 0xdb };

int adverse_copy_tail(const struct pieces *from, const struct pieces *to)
{
    uint64_t bytes = 1 + shm_random(from->bytes);
    return copy_range(from, to, from->bytes - bytes, bytes);
}

int adverse_scramble(const struct pieces *to)
{
    char rubbish[CHUNK_MAX];
    memset(rubbish, RUBBISH, sizeof(rubbish));
    for (uint64_t at = 0; at < to->bytes; at += sizeof(rubbish)) {
        struct pieces from, part;
        uint64_t left = to->bytes - at;
        pieces_clear(&from, SHM_NONE);
        pieces_add(&from, rubbish, left < sizeof(rubbish) ? left : sizeof(rubbish));
        pieces_slice(to, at, from.bytes, &part);
        int err = copy_whole(&from, &part);
        if (err) {
            return err;
        }
    }
    return 0;
}

static void scramble_address(struct shm_cqe *e)
{
    memset(&e->src_qp, RUBBISH, sizeof(e->src_qp));
    memset(&e->pkey_index, RUBBISH, sizeof(e->pkey_index));
    memset(&e->slid, RUBBISH, sizeof(e->slid));
    e->sl = e->dlid_path_bits = RUBBISH;
}

void adverse_scramble_cqe(struct shm_cqe *e)
{
    bool is_error = e->status != IBV_WC_SUCCESS;
    if (!is_error && !shm.head->conf.adversarial) {
        return;
    }
    if (is_error || e->is_send || shm.qps[e->qp].type != IBV_QPT_UD) {
        scramble_address(e);
    }
    if (is_error || !(e->wc_flags & IBV_WC_WITH_IMM)) {
        memset(&e->imm, RUBBISH, sizeof(e->imm));
    }
    if (is_error || e->opcode == IBV_WC_SEND || e->opcode == IBV_WC_RDMA_WRITE) {
        memset(&e->byte_len, RUBBISH, sizeof(e->byte_len));
    }
    if (is_error) {
        memset(&e->opcode, RUBBISH, sizeof(e->opcode));
        memset(&e->wc_flags, RUBBISH, sizeof(e->wc_flags));
    }
}
