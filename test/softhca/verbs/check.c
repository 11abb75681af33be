#include "verbs/hca.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/copy.h"

enum { BLOCK = 16384, REPORTS_MAX = 20 };

/* A use that works here by chance and breaks on hardware; softhca-run then fails. */
__attribute__((format(printf, 1, 2))) static void report(const char *format, ...)
{
    va_list args;
    char text[512];

    if (atomic_fetch_add(&shm.head->reports, 1) >= REPORTS_MAX) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "softhca: process %d: %s\n", getpid(), text);
}

static uint64_t mix(uint64_t hash, const unsigned char *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;

        memcpy(&word, p, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    for (; n > 0; n--, p++) {
        hash = (hash ^ *p) * 0x100000001b3ull;
    }
    return hash;
}

/* False when the memory is not there or not registered any more. */
static bool hash_buffers(const struct shm_qp *qp, const struct shm_wqe *wqe, uint64_t *hash)
{
    unsigned char block[BLOCK];

    *hash = 0xcbf29ce484222325ull;
    for (uint32_t i = 0; i < wqe->nsge; i++) {
        const struct ibv_sge *s = &wqe->sge[i];
        void *where = NULL;

        if (s->length && !mr_translate(s->lkey, qp->proc, qp->pd, s->addr, s->length, 0, &where)) {
            return false;
        }
        for (uint64_t at = 0; at < s->length; at += BLOCK) {
            size_t n = s->length - at < BLOCK ? s->length - at : BLOCK;
            struct pieces from, to;

            pieces_clear(&from, qp->proc);
            pieces_clear(&to, SHM_NONE);
            pieces_add(&from, (char *)where + at, n);
            pieces_add(&to, block, n);
            if (copy_pieces(&from, &to) != 0) {
                return false;
            }
            *hash = mix(*hash, block, n);
        }
    }
    return true;
}

static bool is_watched(const struct shm_wqe *wqe)
{
    return !wqe->inlined && wqe->length &&
           (wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM ||
            wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
}

void check_posted(const struct shm_qp *qp, struct shm_wqe *wqe)
{
    if (shm.head->conf.defer_us && is_watched(wqe) && !hash_buffers(qp, wqe, &wqe->hash)) {
        wqe->hash = 0; /* a bad key: the request itself will say so */
    }
}

static void check_one(const struct shm_qp *qp, const struct shm_wqe *wqe, const char *when)
{
    uint64_t hash;
    bool is_there;

    if (!is_watched(wqe) || !wqe->hash || wqe->status != IBV_WC_SUCCESS) {
        return;
    }
    is_there = hash_buffers(qp, wqe, &hash);
    if (is_there && hash == wqe->hash) {
        return;
    }
    report("queue pair 0x%x, request with wr_id 0x%llx, buffer 0x%llx of %u bytes: %s before %s",
           (unsigned)qp->number, (unsigned long long)wqe->wr_id,
           (unsigned long long)wqe->sge[0].addr, wqe->length,
           is_there ? "changed" : "freed or deregistered", when);
}

void check_landing(const struct shm_qp *qp, struct shm_wqe *wqe)
{
    if (!shm.head->conf.defer_us) {
        return;
    }
    if (qp->type != IBV_QPT_RC) {
        check_one(qp, wqe, "it was sent");
    } else if (wqe->flags & IBV_SEND_FENCE) { /* the reads before it may have brought its data */
        check_posted(qp, wqe);
    }
}

void check_polled(uint32_t index, uint64_t position)
{
    struct shm_qp *qp = &shm.qps[index];

    if (!shm.head->conf.defer_us || qp->type != IBV_QPT_RC) {
        return;
    }
    for (uint64_t i = atomic_load(&qp->sq_free); i <= position; i++) {
        check_one(qp, shm_at(&qp->sq, i), "its completion was polled");
    }
}
