#include "run/pieces.h"

void pieces_add(struct pieces *p, void *addr, uint64_t length)
{
    if (length) {
        p->iov[p->n++] = (struct iovec){addr, length};
        p->bytes += length;
    }
}

void pieces_cut(struct pieces *p, uint64_t bytes)
{
    uint64_t seen = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        if (seen + p->iov[i].iov_len >= bytes) {
            p->iov[i].iov_len = bytes - seen;
            p->n = bytes > seen ? i + 1 : i;
            break;
        }
        seen += p->iov[i].iov_len;
    }
    p->bytes = bytes;
}

void pieces_slice(const struct pieces *p, uint64_t from, uint64_t bytes, struct pieces *out)
{
    uint64_t seen = 0;

    pieces_clear(out, p->proc);
    for (uint32_t i = 0; i < p->n && out->bytes < bytes; i++) {
        uint64_t length = p->iov[i].iov_len;

        if (from < seen + length) {
            uint64_t skip = from > seen ? from - seen : 0;
            uint64_t take = length - skip;

            take = take < bytes - out->bytes ? take : bytes - out->bytes;
            pieces_add(out, (char *)p->iov[i].iov_base + skip, take);
        }
        seen += length;
    }
}
