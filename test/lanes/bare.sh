# Sourced by the lanes bare and bare13: a stranger's machine, and README's commands on it.
# shellcheck shell=bash
. "$IBSHIFT_TOP/test/lanes/lib.sh"
. "$IBSHIFT_TOP/test/lanes/pages.sh"

machine=$IBSHIFT_OUT/machine

bare_mirror() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -n 1
}

# The cached machine of a suite, by the checksum of what Debian's archive says of it; without network the last that was made.
bare_base() { # SUITE: sets base
    local cache=${IBSHIFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ibshift} mirror
    mirror=$(bare_mirror)
    mkdir -p "$cache"
    if /usr/lib/apt/apt-helper download-file "${mirror%/}/dists/$1/InRelease" "$IBSHIFT_OUT/InRelease" >"$IBSHIFT_OUT/helper" 2>&1; then
        base=$cache/bare-$1-$(sha256sum "$IBSHIFT_OUT/InRelease" | cut -c1-12).tar
    else
        # shellcheck disable=SC2012
        base=$(ls -t "$cache/bare-$1"-*.tar 2>/dev/null | head -n 1)
        [ -n "$base" ]
    fi
}

make_base() { # SUITE
    local mirror new code
    mirror=$(bare_mirror)
    new=$(mktemp -d "${base%/*}/bare.XXXXXX") || return 1
    debootstrap --variant=minbase "$1" "$new" "$mirror" && tar -C "$new" -cf "$base.part" . && mv "$base.part" "$base"
    code=$?
    rm -rf "$new"
    return $code
}

# The last commit, as a stranger would clone it.
make_machine() {
    mkdir -p "$machine" && tar -C "$machine" -xf "$base" && chmod 755 "$machine" &&
        cp /etc/resolv.conf /etc/hosts "$machine/etc/" &&
        git clone -q --no-hardlinks "$IBSHIFT_TOP" "$machine/root/ibshift"
}

# COMMAND in the machine: namespaces of its own, so that nothing of it outlives the test, and the machine as their root, so
# that what runs there can make and enter others.
inside() {
    # shellcheck disable=SC2016
    unshare --mount --pid --ipc --fork --kill-child bash -c '
        machine=$1
        shift
        mount --make-rprivate / && mount --bind "$machine" "$machine" && mount -t proc proc "$machine/proc" &&
            mount --rbind /dev "$machine/dev" && mount -t tmpfs tmpfs "$machine/dev/shm" &&
            mount -t sysfs -o ro sysfs "$machine/sys" && mkdir -p "$machine/mnt/outside" &&
            cd "$machine" && pivot_root . mnt/outside || exit 1
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
            ${http_proxy:+http_proxy=$http_proxy} ${https_proxy:+https_proxy=$https_proxy} \
            chroot . bash -c "umount -l /mnt/outside && cd /root/ibshift && $*"' bash "$machine" "$@"
}

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

own_program() { inside mpicc -o program test/lanes/program.c; }

# ./test/run, in turns: a run of all lanes is silent for a quarter of an hour, and whoever ends it has no verdict.
test_run() { # LANE
    inside ./test/run "$1" | tee "$IBSHIFT_OUT/last"
    tail -n 1 "$IBSHIFT_OUT/last" | grep -q '^[1-9][0-9]* passed, 0 failed'
}

timed() { # NAME COMMAND...
    local start=$SECONDS
    t_fn "$@"
    echo "    $((SECONDS - start)) s"
}

bare_lane() { # SUITE: IBSHIFT_BARE_LANES names the lanes that are run there, if not all default ones
    local suite=$1 lane
    [ "$(id -u)" = 0 ] || {
        t_skip bare "debootstrap and chroot need root"
        return
    }
    t_needs debootstrap=debootstrap || return
    bare_base "$suite" || {
        t_skip bare "no Debian mirror answers, and no machine is kept"
        return
    }
    [ -f "$base" ] || timed "make the bare machine" make_base "$suite"
    timed "clone" make_machine
    page_commands
    timed "bootstrap --tests" inside ./bootstrap --tests
    for lane in ${IBSHIFT_BARE_LANES-$(inside ./test/run --list | awk '$2 == "default" { print $1 }')}; do
        timed "test run: $lane" test_run "$lane"
        echo "    on the bare machine: $(grep '^--- .* CPU time' "$IBSHIFT_OUT/last"), $(tail -n 1 "$IBSHIFT_OUT/last")"
    done
    rm -rf "$machine"
}
