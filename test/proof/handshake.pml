/*
 * Two peers connect over datagrams; a third one knows whether the second is alive.
 *
 * Stands for:
 *   begin      ibshift_handshake_begin
 *   receive    ibshift_handshake_receive, ibshift_handshake_flags
 *   tick       ibshift_handshake_tick
 *   is_ours    sender_of
 *   bring_up   bring_up, become_ready
 *   heard      ibshift_nv_heard
 *   counts     ibshift_nv_is_second
 *   who, gone  ask_around, hear_who, hear_gone, look_for_death
 *
 * Datagrams are lost, doubled and overtaken, each so often as the budgets say, and one of an earlier
 * process at peer 1's address is on its way from the beginning. Peer 1 may die at any step (-DDEATH);
 * then peer 2, which was connected with it, finds that by a probe. Timers run early as often as
 * EARLY says, and whenever nothing else can happen. With -DECE both have options of their connection:
 * peer 0 sets what both can, and peer 1 takes that.
 *
 * Claims: who may send is heard: a ready side's peer has brought its queue pair up with the numbers
 * of this process. Peer 1 takes options that peer 0 has set. And every wait ends: so many rounds of
 * the timers in which nothing can be lost any more connect both sides, or tell the living one of
 * the death.
 */
#define HAVE 1
#define WANT 2
#define LOSSES 3
#define DOUBLES 2
#define EARLY 3
#define PATIENCE 8 /* rounds of the timers */

#define OLD 7 /* the queue pair of an earlier process */

mtype = { CONNECT, WHO, GONE };

chan to[3] = [3] of { mtype, byte /* from */, byte /* flags */, byte /* queue pair */ };

bool begun[2], has_theirs[2], they_have_mine[2], ready[2], broken[2], heard[2];
byte their_qp[2];
bool talks[2];      /* sends data as soon as it is ready */
bool dead;          /* peer 1 */
bool found_dead;    /* by peer 2's probe */
bool has_asked;     /* peer 0 has asked after peer 1 */
byte losses, doubles, early, rounds;

#define qp(me) ((me) + 1)
#if defined(ECE) && !defined(MUTANT_WISH)
#define counts(me, flags) ((me) == 0 || ((flags) & HAVE))
#else
#define counts(me, flags) true
#endif
#define flags_of(me) ((has_theirs[me] -> HAVE : 0) | (they_have_mine[me] -> 0 : WANT))

/* A datagram for which there is no room is as good as lost. */
inline post(whom, what, from, flags, number)
{
    if
    :: full(to[whom])
    :: nfull(to[whom]) -> to[whom]!what(from, flags, number)
    fi
}

inline hello(me)
{
    post(1 - me, CONNECT, me, flags_of(me), qp(me))
}

inline become_ready(me)
{
    if
    :: has_theirs[me] && they_have_mine[me] && !ready[me] ->
        ready[me] = true;
        rounds = 0;
        assert(has_theirs[1 - me] || (dead && me == 0)); /* else the first message is lost */
        assert(their_qp[me] == qp(1 - me))
    :: else
    fi
}

inline begin(me)
{
    begun[me] = true;
    hello(me)
}

inline receive(me, flags, number)
{
    begun[me] = true;
    if
    :: !has_theirs[me] && counts(me, flags) ->
#ifdef ECE
        assert(me == 0 || has_theirs[0]);
#endif
        has_theirs[me] = true; their_qp[me] = number; rounds = 0
    :: else
    fi;
    if
#ifdef MUTANT_HAVE
    :: true -> they_have_mine[me] = true
#endif
    :: (flags & HAVE) -> they_have_mine[me] = true
    :: else
    fi;
    if
#ifndef MUTANT_SILENT
    :: (flags & WANT) -> hello(me)
#endif
    :: else
    fi;
    become_ready(me)
}

#ifdef MUTANT_STALE
#define is_ours(number) true
#else
#define is_ours(number) ((number) != OLD)
#endif

proctype side(byte me)
{
    mtype what;
    byte from, flags, number;

end:
    do
    :: me == 1 && dead -> break
    :: atomic { !begun[me] && !(me == 1 && dead) -> begin(me) } /* either may start, or both */
    :: atomic { !(me == 1 && dead) && nempty(to[me]) -> to[me]?what(from, flags, number);
        if
        :: what == CONNECT && is_ours(number) -> receive(me, flags, number)
        :: what == GONE && has_asked && !ready[me] -> broken[me] = true
        :: else
        fi }
    /* data of a ready peer: it has our HELLO */
    :: atomic { !(me == 1 && dead) && ready[1 - me] && talks[1 - me] && !heard[me] && has_theirs[me] ->
        heard[me] = true;
        they_have_mine[me] = true;
        become_ready(me) }
    :: atomic { early < EARLY && begun[me] && !ready[me] && !(me == 1 && dead) ->
        early++;
        hello(me) }
    od
}

/* It was connected with peer 1 before; its probes end with an error when that is dead. */
proctype witness()
{
    mtype what;
    byte from, flags, number;

end:
    do
    :: atomic { to[2]?what(from, flags, number) ->
        if
        :: what == WHO && found_dead -> post(0, GONE, 2, 0, 0)
#ifndef MUTANT_NO_PROBE
        :: what == WHO && !found_dead -> found_dead = dead
#endif
        :: else
        fi }
    od
}

/* What happens to datagrams, and the clock. */
proctype world()
{
    mtype what;
    byte from, flags, number, i;

end:
    do
    :: atomic { losses < LOSSES && nempty(to[0]) -> losses++; to[0]?what(from, flags, number) }
    :: atomic { losses < LOSSES && nempty(to[1]) -> losses++; to[1]?what(from, flags, number) }
    :: atomic { losses < LOSSES && nempty(to[2]) -> losses++; to[2]?what(from, flags, number) }
    /* the first goes to the end: overtaken; or a copy of it does: doubled */
    :: atomic { doubles < DOUBLES && len(to[0]) > 0 && nfull(to[0]) -> doubles++;
        to[0]?what(from, flags, number); to[0]!what(from, flags, number);
        if
        :: nfull(to[0]) -> to[0]!what(from, flags, number)
        :: true
        fi }
    :: atomic { doubles < DOUBLES && len(to[1]) > 0 && nfull(to[1]) -> doubles++;
        to[1]?what(from, flags, number); to[1]!what(from, flags, number);
        if
        :: nfull(to[1]) -> to[1]!what(from, flags, number)
        :: true
        fi }
    :: atomic { dead && nempty(to[1]) -> to[1]?what(from, flags, number) }
#ifdef DEATH
    :: atomic { !dead && !ready[0] -> dead = true }
#endif
    /* The timers of all, when nothing else happens. */
    :: atomic { timeout && (!ready[0] && !broken[0] || !ready[1] && !dead) ->
        rounds++;
        assert(rounds < PATIENCE);
        if
        :: begun[0] && !ready[0] && !broken[0] ->
            hello(0);
            has_asked = true;
            post(2, WHO, 0, 0, 0)
        :: else
        fi;
        if
        :: begun[1] && !ready[1] && !dead -> hello(1)
        :: else
        fi }
    od
}

init
{
    atomic {
        if
        :: talks[0] = true
        :: talks[1] = true
        :: true
        fi;
        to[0]!CONNECT(1, HAVE | WANT, OLD);
        run side(0);
        run side(1);
        run witness();
        run world()
    }
}
