/*
 * Two peers send short messages to one receiver, through slots and within a quota.
 *
 * Stands for:
 *   send          ibshift_nv_send_short, ibshift_nv_send_note, put_slot, ibshift_nv_flush
 *   ask           ibshift_nv_has_slot, ask
 *   hear_ask      hear_ask, ibshift_nv_serve
 *   data_came     slot_used, data_came, hold, pull_all
 *   give          ibshift_nv_slot_give
 *   post          ibshift_nv_recv, pull
 *   control_came  pull_came, unpull_came
 *   tell, land    ibshift_nv_tell, complete_send, read_word, ibshift_limit_advance32
 *   is_news       ibshift_limit_is_news
 *
 * Peer 0 has slots of its own; peer 1 came when all were given and asks for single ones by datagram. Each
 * sends its messages in order, when its program gets there; the receiver's program waits for one of
 * them at a time, in any order, so that the others are unexpected. What the receiver says goes through
 * slots of the senders. Datagrams are lost and doubled. A word lands late, and waits for the one before it:
 * two of them might land in any order, and the older one stay in memory. With -DDEATH peer 0 dies at any step: what it holds
 * must not keep peer 1 from ending. With -DRING messages of peer 0 may also go through a ring, which
 * needs neither slot nor quota, and so may overtake the others.
 *
 * Claims: no message comes without a receive for it, of a shared queue or of its connection's own, none is held beyond the quota, all arrive, and at
 * the end no slot, quota or request is missing.
 */
#define M 3 /* messages a peer */
#define ALL ((1 << M) - 1)
#define QUOTA 1
#define STOCK 1   /* single slots for those who ask */
#define LOSSES 1
#define DOUBLES 1
#define PATIENCE 4 /* rounds of the timers in which nothing moves */
#define P 2

#ifdef DEATH
#define is_dead dead
#else
#define is_dead false
#endif
#define bit(key) (1 << (key))
#define lowest(set) ((set) & 1 -> 0 : ((set) & 2 -> 1 : 2))
#define window(p) ((p) == 0 -> 2 : 0)
#define alive(p) ((p) == 1 || !is_dead)

mtype = { DATA, PULL, UNPULL };

/* Reliable, in order: a queue pair. The limits ride on each message. */
chan data[P] = [4] of { byte /* key */, bit /* unasked */, byte /* back: slots */ };
chan control[P] = [4] of { mtype, byte /* key */, byte /* slots */, byte /* quota */ };
chan ring = [2] of { byte /* key */, bit /* unasked */ };
chan asks = [2] of { byte /* limit known */ }; /* datagrams of peer 1 */

/* The senders. */
byte issued[P], sent[P], pulled[P], grants[P];            /* sets of keys, but for issued: a count */
byte slots[P], slots_used[P], quota[P], quota_used[P];    /* limits known, and used */
byte back[P], back_told[P], back_arrived[P];              /* slots for what the receiver says */

/* The receiver, by peer. */
byte posted[P], is_pulled[P], held[P], done[P];           /* sets of keys */
byte in_cells;                                            /* held messages that came through the ring */
byte in_slots[P], in_told[P], in_arrived[P];
byte own[P];                                              /* receives, without a shared queue */
#ifdef MUTANT_TELL_FIRST
byte owed;                                                /* of peer 1, that it has been told of */
#endif
byte in_quota[P], quota_told[P], quota_arrived[P];
byte out_slots[P], out_used[P];
byte unsaid[P], unsaid_un[P];                             /* PULL and UNPULL that wait for a slot */
byte stock = STOCK;
bit is_asking;

/* Words: on their way, and landed in the sender's memory, and in the receiver's. */
#ifdef MUTANT_NO_WAIT
chan word[P] = [2] of { byte, byte };
#else
chan word[P] = [1] of { byte, byte };
#endif
bit must_tell[P];
byte memory_slots[P], memory_quota[P];

byte asked;                                               /* by peer 1, its limit then, plus one */
byte losses, doubles, rounds, key;
bit dead;

#define is_news(limit, told, arrived, most) ((limit) > (told) && (((limit) - (told)) * 2 >= (most) || (arrived) == (told)))
#define in_flight(p) (slots_used[p] - in_arrived[p])

inline advance(limit, news)
{
    if
    :: news > limit -> limit = news
    :: else
    fi
}

inline tell(p)
{
    if
    :: nfull(word[p]) ->
        word[p]!in_slots[p], in_quota[p];
        in_told[p] = in_slots[p];
        quota_told[p] = in_quota[p];
        must_tell[p] = 0
    :: full(word[p]) -> must_tell[p] = 1
    fi
}

inline tell_if_news(p)
{
    if
    :: is_news(in_slots[p], in_told[p], in_arrived[p], window(p)) || is_news(in_quota[p], quota_told[p], quota_arrived[p], QUOTA) -> tell(p)
    :: else
    fi
}

inline give(p)
{
#ifdef MUTANT_TELL_FIRST
    if
    :: p == 0 -> own[0]++
    :: p == 1 -> owed++
    fi;
#else
    own[p]++;
#endif
    in_slots[p]++
}

inline serve()
{
    if
#ifdef MUTANT_NO_STOCK
    :: is_asking ->
#else
    :: is_asking && stock > 0 ->
        stock--;
#endif
        is_asking = 0;
        give(1);
        tell(1)
    :: else
    fi
}

/* Pulls and their ends leave in the order in which they were said; a set is enough for that. */
inline say(p)
{
    if
    :: out_used[p] < out_slots[p] && unsaid[p] != 0 ->
        key = lowest(unsaid[p]);
        unsaid[p] = unsaid[p] & ~bit(key);
        out_used[p]++;
        control[p]!PULL(key, in_slots[p], in_quota[p]);
        in_told[p] = in_slots[p];
        quota_told[p] = in_quota[p]
    :: out_used[p] < out_slots[p] && unsaid[p] == 0 && unsaid_un[p] != 0 ->
        key = lowest(unsaid_un[p]);
        unsaid_un[p] = unsaid_un[p] & ~bit(key);
        out_used[p]++;
        control[p]!UNPULL(key, in_slots[p], in_quota[p]);
        in_told[p] = in_slots[p];
        quota_told[p] = in_quota[p]
    fi
}

inline pull(p, k)
{
#ifndef MUTANT_NO_PULL
    is_pulled[p] = is_pulled[p] | bit(k);
    unsaid[p] = unsaid[p] | bit(k)
#else
    skip
#endif
}

inline post(p, k)
{
    if
    :: p == 0 && (in_cells & bit(k)) ->
        in_cells = in_cells & ~bit(k);
        done[p] = done[p] | bit(k)
    :: (held[p] & bit(k)) ->
        held[p] = held[p] & ~bit(k);
        done[p] = done[p] | bit(k);
        in_quota[p]++;
        tell_if_news(p)
    :: else ->
        posted[p] = posted[p] | bit(k);
        if
        :: held[p] != 0 -> pull(p, k) /* the quota is one, so it is spent */
        :: else
        fi
    fi
}

inline matched(p, k, unasked)
{
    posted[p] = posted[p] & ~bit(k);
    done[p] = done[p] | bit(k);
    if
#ifndef MUTANT_NO_UNPULL
    :: unasked && (is_pulled[p] & bit(k)) -> unsaid_un[p] = unsaid_un[p] | bit(k)
#endif
    :: else
    fi
}

inline record_came(k, unasked)
{
    assert(!(done[0] & bit(k)));
    if
    :: (posted[0] & bit(k)) -> matched(0, k, unasked)
    :: else ->
        assert(unasked);
        in_cells = in_cells | bit(k)
    fi
}

inline data_came(p, k, unasked)
{
    assert(!(done[p] & bit(k)));
    in_arrived[p]++;
    own[p]--;
    quota_arrived[p] = quota_arrived[p] + unasked;
    if
    :: p == 0 -> give(0)
    :: p == 1 -> stock++; serve()
    fi;
    if
    :: (posted[p] & bit(k)) ->
        matched(p, k, unasked);
        in_quota[p] = in_quota[p] + unasked
    :: else ->
        assert(unasked && held[p] == 0); /* "a message that nobody had asked for" */
        held[p] = held[p] | bit(k);
#ifdef MUTANT_EARLY_QUOTA
        in_quota[p]++;
#endif
        if
        :: posted[p] & ~is_pulled[p] -> pull(p, lowest(posted[p])) /* it waits for one at a time */
        :: else
        fi
    fi;
    tell_if_news(p)
}

inline read_word(p)
{
    advance(slots[p], memory_slots[p]);
    advance(quota[p], memory_quota[p])
}

inline send(p, k, unasked)
{
    slots_used[p]++;
    quota_used[p] = quota_used[p] + unasked;
    sent[p] = sent[p] | bit(k);
    assert(in_flight(0) + in_flight(1) <= window(0) + STOCK); /* there is a receive for each */
    assert(in_flight(p) <= own[p]);
    data[p]!k, unasked, back[p];
    back_told[p] = back[p];
    rounds = 0
}

/* Messages that neither went nor were asked for go in order. */
#define waiting(p) ((bit(issued[p]) - 1) & ~(sent[p] | pulled[p]))
#define has_slot(p) (slots_used[p] < slots[p])
#define has_quota(p) (quota_used[p] < quota[p])

proctype sender(byte p)
{
    byte n, a, b;

end:
    do
    /* The program sends its next message: asked for already, or not. */
    :: atomic { alive(p) && issued[p] < M ->
        if
        :: grants[p] & bit(issued[p]) ->
            grants[p] = grants[p] & ~bit(issued[p]);
            pulled[p] = pulled[p] | bit(issued[p])
        :: else
        fi;
        issued[p]++;
        rounds = 0 }
    :: atomic { alive(p) && (!has_slot(p) || !has_quota(p)) && (slots[p] < memory_slots[p] || quota[p] < memory_quota[p]) -> read_word(p) }
    /* What was asked for goes first and needs no quota. */
    :: atomic { alive(p) && pulled[p] != 0 && has_slot(p) && nfull(data[p]) ->
        n = lowest(pulled[p]);
        pulled[p] = pulled[p] & ~bit(n);
        send(p, n, 0) }
    :: atomic { alive(p) && pulled[p] == 0 && waiting(p) != 0 && has_slot(p) && has_quota(p) && nfull(data[p]) ->
        n = lowest(waiting(p));
        send(p, n, 1) }
#ifdef RING
    :: atomic { p == 0 && alive(p) && pulled[p] != 0 && nfull(ring) ->
        n = lowest(pulled[p]);
        pulled[p] = pulled[p] & ~bit(n);
        sent[p] = sent[p] | bit(n);
        ring!n, 0 }
    :: atomic { p == 0 && alive(p) && pulled[p] == 0 && waiting(p) != 0 && nfull(ring) ->
        n = lowest(waiting(p));
        sent[p] = sent[p] | bit(n);
        ring!n, 1 }
#endif
    :: atomic { p == 1 && !has_slot(1) && slots[1] >= memory_slots[1] && asked != slots[1] + 1 &&
                (pulled[1] != 0 || (waiting(1) != 0 && has_quota(1))) && empty(asks) ->
        asked = slots[1] + 1; /* it asks again by the clock */
        asks!slots[1] }
    /* What the receiver says; the slot that it took is free again. */
    :: atomic { alive(p) && nempty(control[p]) ->
        if
        :: control[p]?PULL(n, a, b);
            if
            :: (sent[p] & bit(n)) || n >= issued[p] -> grants[p] = grants[p] | bit(n)
            :: else -> pulled[p] = pulled[p] | bit(n)
            fi
        :: control[p]?UNPULL(n, a, b); grants[p] = grants[p] & ~bit(n)
        fi;
        advance(slots[p], a);
        advance(quota[p], b);
        back[p]++;
        back_arrived[p]++;
        if
        :: is_news(back[p], back_told[p], back_arrived[p], 1) && alive(p) -> out_slots[p] = back[p]; back_told[p] = back[p]
        :: else
        fi }
    od
}

proctype receiver(byte p)
{
    byte n, a;
    bit flag;

end:
    do
    :: atomic { nempty(data[p]) ->
        data[p]?n, flag, a;
        advance(out_slots[p], a);
        data_came(p, n, flag);
        rounds = 0 }
    :: atomic { p == 0 && nempty(ring) ->
        ring?n, flag;
        record_came(n, flag);
        rounds = 0 }
    :: atomic { (unsaid[p] | unsaid_un[p]) && out_used[p] < out_slots[p] && nfull(control[p]) -> say(p) }
    :: atomic { posted[p] == 0 && done[p] != ALL ->
        if
        :: !(done[p] & 1) -> n = 0
        :: !(done[p] & 2) -> n = 1
        :: !(done[p] & 4) -> n = 2
        fi;
        post(p, n);
        rounds = 0 }
    :: atomic { p == 1 && nempty(asks) -> asks?n;
        if
        :: is_asking
#ifdef MUTANT_OLD_ASK
        :: !is_asking -> is_asking = 1; serve()
#else
        :: !is_asking && (in_slots[1] != in_arrived[1] || n != in_slots[1]) -> tell(1)
        :: !is_asking && in_slots[1] == in_arrived[1] && n == in_slots[1] -> is_asking = 1; serve()
#endif
        fi }
#ifdef MUTANT_TELL_FIRST
    :: atomic { p == 1 && owed > 0 -> owed--; own[1]++ }
#endif
    od
}

#define is_over (done[1] == ALL && (done[0] == ALL || is_dead))

inline land(p)
{
    word[p]?memory_slots[p], memory_quota[p];
    if
#ifndef MUTANT_NO_RETELL
    :: must_tell[p] -> tell(p)
#endif
    :: else
    fi
}

proctype world()
{
    byte n, a, b;

end:
    do
    :: atomic { nempty(word[0]) -> land(0) }
    :: atomic { nempty(word[1]) -> land(1) }
#ifdef MUTANT_NO_WAIT
    :: atomic { len(word[0]) == 2 -> word[0]?a, b; word[0]?memory_slots[0], memory_quota[0]; word[0]!a, b }
    :: atomic { len(word[1]) == 2 -> word[1]?a, b; word[1]?memory_slots[1], memory_quota[1]; word[1]!a, b }
#endif
    :: atomic { nempty(asks) && losses < LOSSES -> losses++; asks?n }
    :: atomic { len(asks) == 1 && doubles < DOUBLES -> doubles++; asks?n; asks!n; asks!n }
#ifdef DEATH
    :: atomic { !dead -> dead = 1 }
#endif
    /* The clocks of all, when nothing else can happen. */
    :: atomic { timeout && !is_over ->
        rounds++;
        assert(rounds < PATIENCE);
        asked = 0 }
    :: atomic { timeout && done[0] == ALL && done[1] == ALL ->
        assert(stock == STOCK && in_slots[0] == in_arrived[0] + 2);
        assert(in_quota[0] == quota_arrived[0] + QUOTA && in_quota[1] == quota_arrived[1] + QUOTA);
        assert((is_dead || (grants[0] == 0 && pulled[0] == 0)) && grants[1] == 0 && pulled[1] == 0);
        break }
    od
}

init
{
    d_step {
        own[0] = 2; slots[0] = 2; memory_slots[0] = 2; in_slots[0] = 2; in_told[0] = 2;
        quota[0] = QUOTA; in_quota[0] = QUOTA; quota_told[0] = QUOTA;
        quota[1] = QUOTA; in_quota[1] = QUOTA; quota_told[1] = QUOTA;
        back[0] = 1; back_told[0] = 1; out_slots[0] = 1;
        back[1] = 1; back_told[1] = 1; out_slots[1] = 1
#ifdef RING /* peer 1 has nothing to send */
        issued[1] = M; sent[1] = ALL; done[1] = ALL
#endif
    }
    atomic {
        run sender(0);
        run sender(1);
        run receiver(0);
        run receiver(1);
        run world()
    }
}
