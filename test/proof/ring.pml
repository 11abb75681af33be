/*
 * One peer writes short messages into a ring, which the receiver takes back and offers again. Each takes one line.
 *
 * Stands for:
 *   write        put_ring, fits_ring, ibshift_ring_asks, ibshift_nv_try_send
 *   take, spoil  take_record, ibshift_nv_record_taken, ibshift_nv_try_recv, next_record, ibshift_wire_check, ibshift_ring_spoil
 *   settle       ibshift_nv_ring_settle, ibshift_ring_answers, ibshift_ring_limit
 *   offer        offer
 *   take_back    take_back, leave_if_done
 *   ring_came    ibshift_nv_ring_came
 *   mark         ibshift_ring_mark
 *   tell, landed ibshift_nv_tell, complete_send, read_word, ibshift_limit_advance32
 *
 * A record lands in two parts, payload and header, in any order, and with -DSWAP whole writes land in any
 * order; a word waits for the one before it. Messages have one of two contents, so that an older one in the
 * same place may be equal: the receiver spoils what it offers and has taken, else a record would count before it has
 * landed, and land in the midst of a later one. With -DORDERED all lands in its order, and only the mark is
 * looked at. A send comes after the writes before it. Between two offers another peer has used the ring, with
 * records of the same numbers. The receiver's program takes held records back at any time, so their places
 * come back one by one. With -DDEATH the writer dies at any step.
 *
 * Claims: each message is taken once, with its own payload, in its order; the ring's next user finds no late
 * record of this one; and the messages of a living writer all arrive.
 */
#define RECORDS 4
#define M 6       /* messages */
#define MOVES 1   /* how often the ring is taken back */
#define HELD 1    /* messages that are held at a time */
#define SPOILT 9  /* no message's content */
#define content(message) ((message) / RECORDS % 2)

mtype = { OFFER, CLOSE, LEFT };

/* Writes on their way: a record's payload and header have each its own. */
chan payloads = [3] of { byte /* place */, byte /* content */ };
chan headers = [3] of { byte /* place */, byte /* mark */, byte /* content that it is about */, bit /* tell */ };
chan word = [1] of { byte };
chan sends = [3] of { mtype, byte };     /* to the writer: in order, as all sends of one queue pair */
chan answers = [3] of { mtype, byte };

/* The receiver's memory. */
byte payload[RECORDS], mark[RECORDS], about[RECORDS];
bit tells[RECORDS];
byte memory;                             /* the writer's: its word */

/* The writer. */
byte limit, used, asked = 255, next;
bit has_ring;

/* The receiver. */
byte head, told, held, taken, last, moves;
bit is_ours, is_closing, is_closed, is_asked, must_tell;
byte seed;                               /* of the offer */
bit dead;

#ifdef DEATH
#define is_dead dead
#else
#define is_dead 0
#endif
#ifdef MUTANT_NO_SEED
#define mark_of(number) ((number) % (RECORDS * 2) + 1)
#else
#define mark_of(number) ((number) % (RECORDS * 2) + 1 + 16 * seed)
#endif
#define ring_limit (is_ours -> head + RECORDS - held : 0)
#define place(number) ((number) % RECORDS)

#if defined(ORDERED) || defined(MUTANT_NO_SPOIL)
#define spoil(at) skip
#else
#define spoil(at) payload[at] = SPOILT
#endif

inline tell()
{
    if
    :: nfull(word) -> word!ring_limit; told = ring_limit; is_asked = 0; must_tell = 0
    :: full(word) -> must_tell = 1
    fi
}

inline leave_if_done()
{
    if
#ifdef MUTANT_LEAVE_EARLY
    :: is_ours && is_closing && held == 0 ->
#else
    :: is_ours && is_closed && head == last && held == 0 ->
#endif
        assert(empty(payloads) && empty(headers)); /* nothing of this writer comes to the ring's next user */
        is_ours = 0;
        is_closing = 0;
        is_closed = 0
    :: else
    fi
}

inline settle()
{
    if
    :: is_ours && is_asked && ring_limit - told > RECORDS / 4 -> tell()
    :: else
    fi;
    leave_if_done()
}

proctype writer()
{
    byte n;
    bit asks;

end:
    do
    :: atomic { !is_dead && has_ring && used == limit && memory > limit -> limit = memory }
    :: atomic { !is_dead && has_ring && used < limit && next < M && nfull(payloads) && nfull(headers) ->
        asks = (limit - used <= RECORDS / 4 + 1 && asked != limit);
#ifdef MUTANT_NO_ASK
        asks = 0;
#endif
        payloads!place(used), content(next);
        headers!place(used), mark_of(used), content(next), asks;
        used++;
        asked = (asks -> limit : asked);
        next++ }
    :: atomic { !is_dead && nempty(sends) ->
        if
        :: sends?OFFER(n);
            has_ring = 1;
            limit = (n > limit -> n : limit)
        :: sends?CLOSE(n);
            has_ring = 0;
            limit = used;
            answers!LEFT(used)
        fi }
    od
}

/* Writes land: payload and header of one record in any order. */
proctype wire()
{
    byte at, number, message;
    bit flag;

end:
    do
    :: atomic { nempty(payloads) ->
        payloads?at, message;
        payload[at] = message }
#ifdef ORDERED
    :: atomic { len(headers) > len(payloads) ->
#else
    :: atomic { nempty(headers) ->
#endif
        headers?at, number, message, flag;
        mark[at] = number;
        about[at] = message;
        tells[at] = flag }
#ifdef SWAP
    :: atomic { len(headers) >= 2 ->
        headers?at, number, message, flag;
        headers!at, number, message, flag }
    :: atomic { len(payloads) >= 2 ->
        payloads?at, message;
        payloads!at, message }
#endif
    :: atomic { nempty(word) -> word?memory;
        if
        :: must_tell -> tell()
        :: else
        fi }
    od
}

#if defined(MUTANT_NO_FINGERPRINT) || defined(ORDERED)
#define fits(at) true
#else
#define fits(at) (payload[at] == about[at])
#endif

proctype receiver()
{
    byte n;

end:
    do
    :: atomic { is_ours && mark[place(head)] == mark_of(head) && fits(place(head)) ->
        assert(payload[place(head)] == content(taken)); /* its own, and in its order */
        spoil(place(head));
        is_asked = is_asked | tells[place(head)];
        taken++;
        head++;
        if
        :: held < HELD -> held++ /* nobody waits for it yet: it keeps its place */
        :: true
        fi;
        settle() }
    :: atomic { held > 0 -> held--; settle() }
    :: atomic { is_ours && !is_closing && moves < MOVES && nfull(sends) ->
        moves++;
        is_closing = 1;
        sends!CLOSE(0) }
    :: atomic { !is_ours && taken < M && nfull(sends) ->
        n = 0;
        do
        :: n < RECORDS -> spoil(n); n++
        :: else -> break
        od;
        mark[place(head)] = mark_of(head); /* the other peer's: of its own offer */
        seed++;
        is_ours = 1;
        is_closing = 0;
        is_closed = 0;
        is_asked = 0;
        told = head + RECORDS;
        sends!OFFER(told) }
    :: atomic { nempty(answers) && empty(payloads) && empty(headers) -> answers?LEFT(n);
        is_closed = 1;
        last = n;
        leave_if_done() }
    od
}

proctype clock()
{
end:
    do
#ifdef DEATH
    :: atomic { !dead -> dead = 1 }
#endif
    :: atomic { timeout && taken < M && !is_dead ->
        assert(false) /* the writer waits for ever */ }
    od
}

init
{
    atomic {
        run writer();
        run wire();
        run receiver();
        run clock()
    }
}
