/*
 * Grants that stand: the receiver's scratch has two halves, which calls take in turn, and the first grant of each is
 * good for the later calls, too. The sender writes as soon as its own call has begun, from its buffer or, where that
 * cannot be registered, from copies; either may die or give up at any step.
 *
 * Stands for:
 *   number       ibshift_nv_standing
 *   post         ibshift_nv_standing_recv
 *   came         part_came, ibshift_nv_standing_came, ibshift_nv_stand
 *   keep         keep_standing
 *   forget       ibshift_nv_standing_forget, net_forget
 *   probe        check_alive
 *
 * A call ends on no rank before it has begun on all: the sender's waits for a message that the receiver sends when it
 * begins. What a call has received it looks at in two steps, the last of which ends it.
 *
 * Claims: what lands in a half is not needed there any more, and nothing lands in memory that is the program's again; a
 * call sees its own data; every call ends.
 */
#define CALLS 5
#define PATIENCE 3
#ifdef MUTANT_ONE_HALF
#define HALVES 1
#else
#define HALVES 2
#endif
#define HALF(call) (call % HALVES)

mtype = { GRANT, BEGUN, BYE };

chan told = [6] of { mtype, byte };  /* receiver to sender */
chan flight = [3] of { byte };       /* data on their way, by call */
chan news = [3] of { byte };         /* immediate data, behind the data */

byte data[2];                        /* what lies in a half: the call's number */
bit granted[2];                      /* the receiver has told of it */
bit has_come[2];
byte call, phase;                    /* the receiver's: 0 outside of calls, 1 waits, 2 and 3 looks at what came */
bit has_deadline, failed, forgotten, freed, is_closed;
bit knows[2];                        /* the sender: a grant of this half stands */
byte at, wrote, heard;               /* its call; the last that it has written; the last that the receiver has begun */
bit peer_dead;
byte rounds;

proctype receiver()
{
    byte n;

end:
    do
    :: atomic { phase == 0 && call < CALLS && !failed && nfull(told) ->
        call++;
        rounds = 0;
        if
        :: !granted[HALF(call)] -> granted[HALF(call)] = 1; told!GRANT(HALF(call))
        :: else
        fi;
        phase = 1 }
    :: atomic { phase == 1 && nfull(told) -> told!BEGUN(call); phase = 2 }
    :: atomic { phase == 2 && has_come[HALF(call)] -> has_come[HALF(call)] = 0; phase = 3 }
    :: atomic { phase == 3 -> assert(data[HALF(call)] == call); phase = 4 }
    :: atomic { phase == 4 -> assert(data[HALF(call)] == call); phase = 0 }
    :: atomic { nempty(news) ->
        news?n;
        if
        :: is_closed || forgotten
        :: else -> assert(!has_come[HALF(n)]); has_come[HALF(n)] = 1
        fi }
    /* A deadline, or another rank's failure: it fails the communicator, and the program frees that. */
    :: atomic { phase == 2 && has_deadline && !failed -> failed = 1; phase = 0; if :: nfull(told) -> told!BYE(0) :: full(told) fi }
    :: atomic { phase == 0 && (failed || call == CALLS) && !forgotten ->
        forgotten = 1;
#ifdef MUTANT_FREED
        freed = 1
#else
        freed = !failed /* else only when the connection has ended */
#endif
        }
    od
}

proctype sender()
{
    byte n;

end:
    do
    :: atomic { !peer_dead && nempty(told) ->
        if
        :: told?GRANT(n) -> knows[n] = 1
        :: told?BEGUN(n) -> heard = n
        :: told?BYE(n) -> is_closed = 1
        fi }
    :: atomic { !peer_dead && at == wrote && at < CALLS -> at++ }
    :: atomic { !peer_dead && wrote < at && knows[HALF(at)] && nfull(flight) &&
#ifdef MUTANT_ENDS_ALONE
        true
#else
        (heard >= at - 1) /* the call before has ended here */
#endif
        -> wrote = at; flight!at }
#ifdef DEATH
    :: atomic { !peer_dead -> peer_dead = 1 }
#endif
    od
}

/* The device: data lands before the news of it, also of a sender that has died. */
proctype device()
{
    byte n;

end:
    do
    :: atomic { nempty(flight) && nfull(news) ->
        flight?n;
        assert(!freed);
        assert(granted[HALF(n)]);
        assert(failed || (!has_come[HALF(n)] && !(phase > 0 && call != n && HALF(call) == HALF(n))));
        data[HALF(n)] = n;
        news!n }
    :: atomic { timeout && phase == 2 ->
        rounds++;
        assert(rounds < PATIENCE);
        if
#ifndef MUTANT_NO_PROBE
        :: peer_dead || is_closed -> failed = 1; phase = 0
#endif
        :: else
        fi }
    od
}

init
{
    atomic {
        if
        :: has_deadline = 1
        :: true
        fi;
        run receiver();
        run sender();
        run device()
    }
}
