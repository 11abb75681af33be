# Sourced by lanes that run MPI programs: the staged component on this machine, few cores.
# shellcheck shell=bash
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
MPIRUN=${MPIRUN:-$(sed -n 's/^MPIRUN = //p' "$IBSHIFT_BUILD/Makefile")}

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
        --mca mca_base_component_path "$IBSHIFT_STAGE/lib/openmpi:SYS_DEFAULT" \
        "${selection[@]}" ${MPI_OPTIONS-} "$@"
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
