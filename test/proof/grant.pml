/*
 * A long message: the receiver grants its buffer, the sender writes it in two parts, and either may give the
 * collective up or die at any step.
 *
 * Stands for:
 *   grant        ibshift_nv_grant, enter_grant, ibshift_nv_granted
 *   write        write_some, written
 *   part_came    part_came
 *   cancel       net_cancel, cancel_list, ibshift_nv_break
 *   drained      ibshift_nv_drain_poll
 *   abort_came   abort_came, abort_list
 *   probe        check_alive
 *
 * A write goes out with the key of the buffer, lands later, and only then is complete. A connection that
 * breaks takes its queue pairs to the error state; what the device has begun may land until the marker behind it
 * has come back. The program has the buffer again when the receive ends, and takes it for something else.
 *
 * Claims: nothing lands in a buffer that the program has again, a message that ends well is whole, no part is
 * counted for another message, and every receive ends.
 */
#define MESSAGES 3
#define PARTS 2
#define PATIENCE 3
#define NONE 255
#ifdef MUTANT_FIRST_PART
#define is_whole true
#else
#define is_whole (came == PARTS)
#endif

mtype = { GRANT, PART, ABORT, BYE };

chan sends = [4] of { mtype, byte };  /* receiver to sender */
chan parts = [4] of { mtype, byte };  /* sender to receiver; the news of a part comes behind its data */
chan flight = [2] of { byte };        /* data on its way, by message */

byte grant = NONE;                    /* the message whose buffer is granted: its age */
byte landed, came, message;           /* parts of the message now received */
bit is_lent;                          /* the buffer is the library's */
bit is_broken, is_drained;            /* the receiver's side of the connection */
bit has_deadline, is_cancelled;
byte to = NONE, written, sent;        /* the sender: the grant that it has, parts posted, messages done */
bit peer_broken, given_up, peer_dead;
byte rounds;

inline end_receive()
{
    is_lent = 0;
    grant = NONE;
    rounds = 0
}

inline break_it()
{
    is_broken = 1;
#ifdef MUTANT_NO_DRAIN
    end_receive()
#endif
}

proctype receiver()
{
    byte n;

end:
    do
    /* The program receives the next message. */
    :: atomic { !is_lent && !is_broken && !is_cancelled && message < MESSAGES && nfull(sends) ->
        is_lent = 1;
        landed = 0;
        came = 0;
        message++;
        grant = message;
        rounds = 0;
        sends!GRANT(grant) }
    :: atomic { nempty(parts) ->
        if
        :: parts?PART(n);
            if
            :: is_broken
            :: !is_broken && n != grant -> break_it() /* it had no grant for that */
            :: !is_broken && n == grant ->
                came++;
                rounds = 0;
                if
                :: is_whole ->
                    assert(landed == PARTS);
                    end_receive()
                :: else
                fi
            fi
        :: parts?ABORT(n);
            if
            :: !is_broken && is_lent -> break_it()
            :: else
            fi
        :: parts?BYE(n); if :: !is_broken -> break_it() :: else fi
        fi }
    /* A deadline, or another rank's failure. */
    :: atomic { has_deadline && !is_cancelled && !is_broken && message > 0 ->
        is_cancelled = 1;
        if
        :: is_lent -> break_it()
        :: !is_lent && nfull(sends) -> sends!ABORT(0)
        :: !is_lent && full(sends)
        fi }
    /* The marker behind all that the device had begun. */
    :: atomic { is_broken && !is_drained && empty(flight) ->
        is_drained = 1;
        if
        :: is_lent -> end_receive()
        :: else
        fi }
    od
}

proctype sender()
{
    byte n;

end:
    do
    :: atomic { !peer_dead && nempty(sends) ->
        if
        :: sends?GRANT(n);
            if
            :: !given_up && !peer_broken -> to = n; written = 0
            :: else
            fi
        :: sends?ABORT(n); given_up = 1
        fi }
    :: atomic { !peer_dead && !peer_broken && to != NONE && written < PARTS && nfull(flight) ->
        written++;
        flight!to;
        if
        :: written == PARTS -> to = NONE; sent++
        :: else
        fi }
    /* It gives the collective up: not granted, it says so; granted and half written, it breaks. */
    :: atomic { !peer_dead && !given_up && nfull(parts) ->
        given_up = 1;
        if
        :: to == NONE -> parts!ABORT(0)
        :: to != NONE -> peer_broken = 1; to = NONE; parts!BYE(0)
        fi }
    :: atomic { is_broken && !peer_broken && !peer_dead -> peer_broken = 1; to = NONE } /* its requests fail */
#ifdef DEATH
    :: atomic { !peer_dead -> peer_dead = 1; to = NONE }
#endif
    od
}

/* The device: data lands before the news of it. */
proctype device()
{
    byte n;

end:
    do
    :: atomic { nempty(flight) && nfull(parts) ->
        flight?n;
        if
        :: is_drained
        :: !is_drained ->
            assert(is_lent && n == message); /* else it lands in what the program does next */
            landed++;
            if
            :: parts!PART(n)
            :: peer_dead || peer_broken || is_broken /* the news is lost */
            fi
        fi }
    :: atomic { timeout && is_lent ->
        rounds++;
        assert(rounds < PATIENCE);
        if
#ifndef MUTANT_NO_PROBE
        :: peer_dead || peer_broken || given_up -> break_it() /* a probe fails, or an answer to it says so */
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
