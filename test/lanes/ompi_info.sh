# Sourced by lanes: Open MPI's own list of parameters and variables, with ibshift's in it.
# shellcheck shell=bash

# OMPI_INFO PATTERN ARGUMENT...: it ends well, and says so
listed() {
    local program=$1 pattern=$2 code
    shift 2
    "$program" "$@" >"$IBSHIFT_OUT/listed" 2>"$IBSHIFT_OUT/listed.err"
    code=$?
    [ $code = 0 ] || { cat "$IBSHIFT_OUT/listed.err"; echo "ompi_info $*: exit code $code"; return 1; }
    grep -q "$pattern" "$IBSHIFT_OUT/listed" || { echo "ompi_info $* does not say: $pattern"; return 1; }
}

ompi_info_lists() { # OMPI_INFO: readable and parsable, at every level; the first has what a user needs first
    local level name form
    for form in '' --parsable; do
        for name in deadline explain fabric; do
            listed "$1" "coll_ibshift_$name" --param coll ibshift $form || return
        done
        for level in 1 2 3 4 5 6 7 8 9; do
            listed "$1" coll_ibshift_fabric --param coll ibshift --level $level $form || return
        done
        listed "$1" coll_ibshift_scan_chosen --all $form || return
    done
    listed "$1" 'coll.*ibshift' --parsable && listed "$1" coll_ibshift_scan_chosen --param all all --level 9
}
