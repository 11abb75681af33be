# Sourced by the lanes intree41 and intree50.
# shellcheck shell=bash
. "$IBSHIFT_TOP/test/lanes/lib.sh"
. "$IBSHIFT_TOP/test/lanes/ompi_info.sh"

intree_packages=(libevent-dev libpmix-dev libhwloc-dev zlib1g-dev flex perl xz-utils)

intree_lane() { # VERSION
    t_needs "${intree_packages[@]}" || return
    t_fn "build with Open MPI $1" "$IBSHIFT_TOP/test/intree/build" "$1"
    prefix=$(tail -n 1 "$IBSHIFT_OUT/build_with_Open_MPI_$1.log")
    [ -x "$prefix/bin/mpirun" ] || return
    intree_programs
}

intree_run() { # RANKS "PROGRAM ARG..." [WRAPPER...]: with the component of the Open MPI in $prefix
    local ranks=$1 program node=1
    read -ra program <<<"$2"
    shift 2
    [ $# = 0 ] || node=0 # under the software HCA each rank stands for a host
    timeout -k 5 "${T_LIMIT:-300}" "$@" "$prefix/bin/mpirun" --oversubscribe --bind-to none -np "$ranks" \
        --mca mpi_yield_when_idle 1 --mca coll ibshift,basic --mca coll_ibshift_node $node "$IBSHIFT_OUT/${program[0]}" "${program[@]:1}"
}

intree_compile() { # PROGRAM
    local common
    read -r -a common < <(sed -n '/^libibshift_mpi_check_la_SOURCES/,/[^\\]$/p' "$IBSHIFT_TOP/test/mpi/Makefile.am" |
        grep -o '[a-z_]*\.c' | tr '\n' ' ')
    (cd "$IBSHIFT_TOP/test/mpi" && "$prefix/bin/mpicc" -O1 -o "$IBSHIFT_OUT/$1" "$1.c" "${common[@]}" -lpthread)
}

# What docs/upstream.md reports to Open MPI is so; with a release that has mended it the report goes.
reports() { # PREFIX SOURCE
    local prefix=$1 source=$2 headers
    headers=$("$prefix/bin/ompi_info" --parsable --path pkgincludedir | cut -d: -f3)
    t_fn "report: lines of a variable are read beyond their end" report_pvar_dump
    case $("$prefix/bin/mpirun" --version) in
    *\ 4.*) ;;
    *) t_fn "report: headers of pthreads are not installed" report_headers ;;
    esac
}

report_pvar_dump() {
    local libraries
    libraries=$("$prefix/bin/mpicc" --showme:libdirs | cut -d' ' -f1)
    # shellcheck disable=SC2046 # words
    gcc -g -I"$headers" -I"$headers/.." -idirafter "$source" $(pkg-config --cflags-only-I pmix | sed 's/-I */-idirafter /g') \
        "$IBSHIFT_TOP/docs/examples/pvar-dump.c" -o "$IBSHIFT_OUT/pvar-dump" -L"$libraries" "-Wl,-rpath,$libraries" -lopen-pal || return
    valgrind -q "$IBSHIFT_OUT/pvar-dump" 2>&1 | tee "$IBSHIFT_OUT/pvar-dump.said"
    grep -q '0 bytes after a block of size 24 alloc' "$IBSHIFT_OUT/pvar-dump.said" || { echo "mended here, or another defect"; return 1; }
}

report_headers() {
    printf '#include "ompi_config.h"\n#include "opal/mca/threads/mutex.h"\n' |
        "$prefix/bin/mpicc" -I"$headers" -I"$headers/.." -fsyntax-only -x c - 2>&1 | tee "$IBSHIFT_OUT/headers.said"
    grep -q 'pthreads/threads_pthreads_mutex.h: No such file' "$IBSHIFT_OUT/headers.said" || { echo "mended here, or another defect"; return 1; }
}

# The programs of test/mpi: silent without a device, and over verbs on the software HCA.
intree_programs() {
    local program
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    t_fn "ompi_info at every level" ompi_info_lists "$prefix/bin/ompi_info"
    reports "$prefix" "${prefix%/*}/src"
    for program in forms comms intercomm neighbor threads spawn many_comms; do
        t_fn "compile $program" intree_compile "$program"
        t_fn "$program without a device" intree_run 4 "$program"
        t_fn "$program over verbs" intree_run 4 "$program" "$IBSHIFT_STAGE/bin/softhca-run" --quiet --
    done
    [ "${prefix#*openmpi-4}" = "$prefix" ] || return 0
    t_fn "compile shrinks" intree_compile shrinks
    t_fn "compile unlike" intree_compile unlike
    t_fn "compile counts" intree_compile counts
    t_fn "compile sessions" intree_compile sessions
    t_fn "sessions" intree_run 3 sessions
    t_fn "sessions over verbs" intree_run 3 sessions "$IBSHIFT_STAGE/bin/softhca-run" --quiet --
    t_fn "sessions begun again, over verbs" t_tries intree_run 3 "sessions 0 again" "$IBSHIFT_STAGE/bin/softhca-run" --quiet --
    MPIRUN=$prefix/bin/mpirun IBSHIFT_COMPONENTS=SYS_DEFAULT IBSHIFT_PROGRAMS=$IBSHIFT_OUT "$IBSHIFT_TOP/test/lanes/ulfm"
}
