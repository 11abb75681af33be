# Sourced by the lanes intree41 and intree50.
# shellcheck shell=bash
. "$IBSHIFT_TOP/test/lanes/lib.sh"

intree_packages=(libevent-dev libpmix-dev libhwloc-dev zlib1g-dev flex perl xz-utils)

intree_have_packages() {
    local missing
    missing=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "${intree_packages[@]}" 2>&1 | grep -v '^ii' || true)
    [ -z "$missing" ] && return 0
    [ "$(id -u)" = 0 ] && apt-get install -y -qq --no-install-recommends "${intree_packages[@]}"
}

intree_lane() { # VERSION
    local prefix
    t_fn "packages for Open MPI $1" intree_have_packages
    t_fn "build with Open MPI $1" "$IBSHIFT_TOP/test/intree/build" "$1"
    prefix=$(tail -n 1 "$IBSHIFT_OUT/build_with_Open_MPI_$1.log")
    [ -x "$prefix/bin/mpirun" ] || return
    intree_programs "$prefix"
}
