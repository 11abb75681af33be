# Sourced by lanes that run MPI programs: the staged component on this machine, few cores.
# shellcheck shell=bash
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
MPIRUN=${MPIRUN:-$(sed -n 's/^MPIRUN = //p' "$IBSHIFT_BUILD/Makefile")}

# From 5.0 on mpirun would hand the folder to PMIx and PRRTE, too, which then complain of SYS_DEFAULT.
# RECOVERY: mpirun goes on when a process is killed.
component_path=${IBSHIFT_COMPONENTS:-$IBSHIFT_STAGE/lib/openmpi:SYS_DEFAULT}
case $("$MPIRUN" --version) in
*\ 4.*) component_path=(--mca mca_base_component_path "$component_path") RECOVERY="--mca orte_enable_recovery 1" ;;
*) component_path=(-x "OMPI_MCA_mca_base_component_path=$component_path") RECOVERY="--runtime-options recoverable" ;;
esac

mpi_programs() { # builds test/mpi
    make -C "$IBSHIFT_BUILD/test/mpi" -j"$(nproc)" programs >"$IBSHIFT_OUT/make.log" 2>&1
}

# Before mpirun, for example softhca-run and its options.
MPIRUN_BEFORE=()

# RANKS LIST-OF-COMPONENTS PROGRAM [ARGUMENT...]; MPI_OPTIONS has further options of mpirun.
mpi_run() {
    local ranks=$1 list=$2 selection=()
    shift 2
    [ "$list" = none ] || selection=(--mca coll "$list")
    # Under the software HCA each rank stands for a host: none of them shares memory with another.
    if [ -n "${NODE-}" ] || [ ${#MPIRUN_BEFORE[@]} -gt 0 ]; then
        export OMPI_MCA_coll_ibshift_node=${NODE:-0}
    fi
    # shellcheck disable=SC2086
    timeout -k 5 "${T_LIMIT:-120}" "${MPIRUN_BEFORE[@]}" "$MPIRUN" --oversubscribe --bind-to none -np "$ranks" --mca mpi_yield_when_idle 1 \
        "${component_path[@]}" "${selection[@]}" ${MPI_OPTIONS-} "$@"
}

# Ranks that call different collectives at one place. Each rank's messages are in a file of their own: together they must name both
# collectives of so many pairs.
unlike_calls() { # PAIRS LONE RUN...: of test/mpi/unlike
    local pairs=$1 lone=$2 said=$IBSHIFT_OUT/ranks.unlike
    shift 2
    rm -rf "$said"*
    UNLIKE_SAID=$said MPI_OPTIONS="--mca coll_ibshift_deadline 20 ${MPI_OPTIONS-}" "$@" >"$said.out" 2>&1 || {
        grep -hE 'unlike\.c|hangs' "$said."*
        return 1
    }
    grep 'pairs of' "$said.out"
    cat "$said".*.err | awk -v pairs="$pairs" -v lone="$lone" '
        { sub(",", "", $2) }
        $1 == "Here:" { here = $2; is_lone = $0 ~ "rank " lone " on host" }
        $1 == "There:" {
            pair = is_lone ? here " " $2 : $2 " " here
            if ((is_lone || $NF == lone) && !named[pair]++) {
                count++
            }
        }
        END {
            print count + 0 " pairs are named"
            exit count != pairs
        }'
}

recurring_unlike() { # RUN...: counts that do not match after equal ones
    MPI_OPTIONS="--mca coll_ibshift_deadline 20 --mca coll_ibshift_alltoall_algorithm bruck ${MPI_OPTIONS-}" \
        "$@" 4 ibshift,basic${FTAGREE:+,ftagree} "$programs/counts" unlike recurring alltoallv 1 3 >"$IBSHIFT_OUT/said" 2>&1 &&
        grep -q 'From: *rank 1, which sends 12 bytes' "$IBSHIFT_OUT/said" &&
        grep -q 'To: *rank 3, which awaits 16 bytes' "$IBSHIFT_OUT/said" && return
    cat "$IBSHIFT_OUT/said"
    return 1
}

hca() { # OPTION OF SOFTHCA-RUN... -- RANKS LIST PROGRAM...; PERSONALITY: of all runs (lane personalities_all)
    local options=(${PERSONALITY:+--personality "$PERSONALITY"})
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    MPIRUN_BEFORE=("$IBSHIFT_STAGE/bin/softhca-run" "${options[@]}")
    mpi_run "$@"
}
