# Sourced by the lanes bare and bare13: README's commands on a stranger's machine.
# shellcheck shell=bash
. "$IBSHIFT_TOP/test/lanes/machine.sh"
. "$IBSHIFT_TOP/test/lanes/pages.sh"

page_inside() { # K: README's block K that is marked "runs", there as it stands
    marked README.md "$1" >"$machine/root/commands"
    cp "$IBSHIFT_TOP/test/lanes/pages.sh" "$machine/root/pages.sh"
    inside ". /root/pages.sh && block /root/commands"
}

once_inside() { # K: the commands of README's block K that "runs once"; all tests are run lane by lane below
    local line
    while IFS= read -r line; do
        case ${line%%#*} in
        '' | ./test/run*) ;;
        *) timed "README, ${line%%  *}" inside "${line%%#*}" ;;
        esac
    done < <(marked README.md "$1" 'runs once')
}

# The marked blocks of README in the page's order; the program that is the reader's own is made before.
page_commands() {
    local mark k=0 once=0
    while IFS= read -r mark; do
        case $mark in
        *once*) once=$((once + 1)) && once_inside $once ;;
        *) k=$((k + 1)) && timed "program" own_program && timed "README, commands $k" page_inside $k ;;
        esac
    done < <(grep -xE '<!-- runs( once)? -->' "$IBSHIFT_TOP/README.md")
}

own_program() { inside mpicc -o program docs/examples/alltoall.c; }

# ./test/run, in turns: a run of all lanes is silent for a quarter of an hour, and whoever ends it has no verdict.
test_run() { # LANE
    inside ./test/run "$1" | tee "$IBSHIFT_OUT/last"
    tail -n 1 "$IBSHIFT_OUT/last" | grep -q '^[1-9][0-9]* passed, 0 failed'
}

bare_lane() { # SUITE: IBSHIFT_BARE_LANES names the lanes that are run there, if not all default ones
    local lane
    machine_base "$1" || return
    timed "clone" clone_inside
    page_commands
    timed "bootstrap --tests" inside ./bootstrap --tests
    for lane in ${IBSHIFT_BARE_LANES-$(inside ./test/run --list | awk '$2 == "default" { print $1 }')}; do
        timed "test run: $lane" test_run "$lane"
        echo "    on the bare machine: $(grep '^--- .* CPU time' "$IBSHIFT_OUT/last"), $(tail -n 1 "$IBSHIFT_OUT/last")"
    done
    rm -rf "$machine"
}
