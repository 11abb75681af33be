# Sourced by lanes. Verdict lines go to stdout, everything else into $IBSHIFT_OUT/<test>.log.
# A test's exit code 77 is a skip; its last line of output is the reason.
# shellcheck shell=bash
set -uo pipefail

t_verdict() { # NAME CODE LOG
    case $2 in
    0) echo "PASS $1" ;;
    77) echo "SKIP $1: $(tail -n 1 "$3")" ;;
    *)
        tail -n "${T_LOG_LINES:-30}" "$3" | sed 's/^/    | /'
        echo "FAIL $1: exit code $2 ($3)"
        ;;
    esac
}

t_run() { # NAME COMMAND...: ended after T_LIMIT seconds (default 120)
    local name=$1 log
    shift
    log=$IBSHIFT_OUT/${name//[^A-Za-z0-9._-]/_}.log
    timeout -k 5 "${T_LIMIT:-120}" "$@" >"$log" 2>&1 </dev/null
    t_verdict "$name" $? "$log"
}

t_fn() { # NAME FUNCTION ARG...: the same for a shell function of the lane, without a limit
    local name=$1 log
    shift
    log=$IBSHIFT_OUT/${name//[^A-Za-z0-9._-]/_}.log
    ("$@") >"$log" 2>&1 </dev/null
    t_verdict "$name" $? "$log"
}

t_skip() { echo "SKIP $1: $2"; } # NAME REASON
