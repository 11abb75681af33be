# Sourced by lanes. Verdict lines go to stdout, everything else into $IBSHIFT_OUT/<test>.log.
# A test's exit code 77 is a skip; its last line of output is the reason.
# shellcheck shell=bash
set -uo pipefail

t_verdict() { # NAME CODE LOG
    case $2 in
    0) echo "PASS $1" ;;
    77) echo "SKIP $1: $(tail -n 1 "$3")" ;;
    *)
        tail -n "${T_LOG_LINES:-30}" "$3" | awk '{ print "    | " $0 }' # a last line without its end, too: the verdict begins one
        echo "FAIL $1: exit code $2 ($3)"
        ;;
    esac
}

t_run() { # NAME COMMAND...: ended after T_LIMIT seconds (default 120)
    local name=$1 log
    shift
    log=$IBSHIFT_OUT/${name//[^A-Za-z0-9._-]/_}.log
    local start=$SECONDS code
    timeout -k 5 "${T_LIMIT:-120}" "$@" >"$log" 2>&1 </dev/null
    code=$?
    t_took "$name" $((SECONDS - start))
    t_verdict "$name" $code "$log"
}

t_fn() { # NAME FUNCTION ARG...: the same for a shell function of the lane, without a limit
    local name=$1 log
    shift
    log=$IBSHIFT_OUT/${name//[^A-Za-z0-9._-]/_}.log
    local start=$SECONDS code
    ("$@") >"$log" 2>&1 </dev/null
    code=$?
    t_took "$name" $((SECONDS - start))
    t_verdict "$name" $code "$log"
}

# One job in fifty that begins sessions again waits for ever in a fence of Open MPI 6.0, with ibshift or without: three tries.
t_tries() { # RUN...
    local code try
    for try in 1 2 3; do
        T_LIMIT=60 "$@"
        code=$?
        [ $code = 124 ] || return $code
        echo "it hung: $try of 3"
    done
    return 1
}

t_took() { echo "$2 $1" >>"$IBSHIFT_OUT/times"; } # NAME SECONDS

# Lanes that run at once build in the same folder.
make() { flock -o "$IBSHIFT_BUILD/make.lock" make "$@"; }

# What a lane needs beyond bootstrap --tests, each a Debian package or COMMAND=PACKAGE: installed as root, else a failure
# that says what to run. A lane that was asked for passes over nothing that can be had, so it is skipped only where the
# packages are not Debian's.
t_needs() { # [COMMAND=]PACKAGE...: false after a verdict
    local need missing=() log=$IBSHIFT_OUT/packages.log
    for need in "$@"; do
        case $need in
        *=*) command -v "${need%%=*}" >/dev/null ;;
        *) dpkg-query -W -f '${db:Status-Abbrev}' "$need" 2>/dev/null | grep -q '^ii' ;;
        esac || missing+=("${need#*=}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || {
        t_skip packages "missing is what Debian's packages ${missing[*]} hold"
        return 1
    }
    t_install "${missing[@]}" >"$log" 2>&1 && return 0
    t_verdict "packages ${missing[*]}" 1 "$log"
    return 1
}

t_install() { # PACKAGE...
    local apt=(apt-get -qq -o DPkg::Lock::Timeout=600)
    [ "$(id -u)" = 0 ] || { echo "as root run: apt-get install --no-install-recommends $*"; return 1; }
    export DEBIAN_FRONTEND=noninteractive
    "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "$@"
}

t_skip() { echo "SKIP $1: $2"; } # NAME REASON
