#include "choose/padded.h"

enum { LONGEST = 64 * 1024 /* that goes padded */ };

static uint64_t size_at(int i)
{
    return i == 0 ? 0 : UINT64_C(2) << 2 * i;
}

void ibshift_padded_add(struct ibshift_padded_counts *counts, uint64_t bytes)
{
    for (int i = 0; i < IBSHIFT_PADDED_SIZES && bytes > size_at(i); i++) {
        counts->longer[i]++;
    }
    counts->longest = bytes > counts->longest ? bytes : counts->longest;
}

static struct ibshift_answer answer_to(const struct ibshift_question *question, uint32_t needs,
                                       uint64_t bytes)
{
    struct ibshift_question at = *question;

    at.needs = needs;
    at.bytes = ibshift_class_size(ibshift_size_class(bytes));
    return ibshift_choose(&at);
}

/* From rank to rank each block can have its own size. */
static bool is_direct(const struct ibshift_answer *answer)
{
    return answer->best.alg == NULL || (answer->best.alg->flags & IBSHIFT_ALG_SIZES) != 0;
}

static struct ibshift_answer padded(const struct ibshift_question *question, uint64_t bytes)
{
    return answer_to(question, 0, bytes + IBSHIFT_PADDED_WORD);
}

bool ibshift_padded_may_pay(const struct ibshift_question *question)
{
    struct ibshift_answer answer = padded(question, size_at(1));

    return !is_direct(&answer);
}

/* Blocks of more than size i, from rank to rank: of all ranks' blocks of one size that takes a known time, of fewer a part of it. */
static double price_direct(const struct ibshift_question *question,
                           const struct ibshift_padded_counts *counts, int i)
{
    double sum = 0;

    for (; i < IBSHIFT_PADDED_SIZES && counts->longer[i] > 0; i++) {
        bool is_last = i == IBSHIFT_PADDED_SIZES - 1 || counts->longer[i + 1] == 0;
        uint64_t blocks = counts->longer[i] - (is_last ? 0 : counts->longer[i + 1]);
        struct ibshift_answer answer =
            answer_to(question, IBSHIFT_ALG_SIZES, is_last ? counts->longest : size_at(i + 1));

        sum += answer.best.price.last * (double)blocks / question->plan->ranks;
    }
    return sum;
}

/* As all blocks go whose sizes nobody knows. */
static double price_unknown(const struct ibshift_question *question,
                            const struct ibshift_padded_counts *counts)
{
    double direct = price_direct(question, counts, 0);
    struct ibshift_answer told =
        answer_to(question, IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_NODE, IBSHIFT_SIZE_UNKNOWN);
    double price = told.best.price.last;

    return !is_direct(&told) && price >= 0 && price < direct ? price : direct;
}

/* All blocks of up to so many bytes padded, the longer ones from rank to rank; negative: that cannot be. */
static double price_padded(const struct ibshift_question *question,
                           const struct ibshift_padded_counts *counts, uint64_t bytes, int next)
{
    struct ibshift_answer answer = padded(question, bytes);

    if (is_direct(&answer)) {
        return -1;
    }
    if (answer.wish.alg == answer.best.alg) { /* it is named: whatever it takes */
        return 0;
    }
    return answer.best.price.last + price_direct(question, counts, next);
}

uint64_t ibshift_padded_most(const struct ibshift_question *question,
                             const struct ibshift_padded_counts *counts)
{
    uint64_t memory = question->leader_memory / question->plan->ranks, most = 0, bytes = 0;
    double best = price_unknown(question, counts) / IBSHIFT_PRICE_EQUAL;

    for (int i = 1; i <= IBSHIFT_PADDED_SIZES && bytes < counts->longest; i++) {
        bool is_last = i == IBSHIFT_PADDED_SIZES || size_at(i) >= counts->longest;
        double price;

        bytes = is_last ? (counts->longest + 3) / 4 * 4 : size_at(i);
        if (bytes > LONGEST || bytes + IBSHIFT_PADDED_WORD > memory) {
            break;
        }
        price = price_padded(question, counts, bytes, is_last ? IBSHIFT_PADDED_SIZES : i);
        if (price >= 0 && price <= best) {
            best = price;
            most = bytes;
        }
    }
    return most;
}
