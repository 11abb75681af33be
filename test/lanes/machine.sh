# Sourced by lanes: a stranger's Debian machine, a debootstrap folder (cached; needs root), and commands in it.
# shellcheck shell=bash
. "$IBSHIFT_TOP/test/lanes/lib.sh"

machine=$IBSHIFT_OUT/machine

debian_mirror() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -n 1
}

# The cached machine of a suite, by the checksum of what Debian's archive says of it; without network the last that was made.
find_base() { # SUITE: sets base
    local cache=${IBSHIFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ibshift} mirror
    mirror=$(debian_mirror)
    mkdir -p "$cache"
    if /usr/lib/apt/apt-helper download-file "${mirror%/}/dists/$1/InRelease" "$IBSHIFT_OUT/InRelease" >"$IBSHIFT_OUT/helper" 2>&1; then
        base=$cache/bare-$1-$(sha256sum "$IBSHIFT_OUT/InRelease" | cut -c1-12).tar
    else
        # shellcheck disable=SC2012
        base=$(ls -t "$cache/bare-$1"-*.tar 2>/dev/null | head -n 1)
        [ -n "$base" ]
    fi
}

make_base() { # SUITE: the only one of that suite that is kept
    local mirror new code
    mirror=$(debian_mirror)
    new=$(mktemp -d "${base%/*}/bare.XXXXXX") || return 1
    debootstrap --variant=minbase "$1" "$new" "$mirror" && tar -C "$new" -cf "$base.part" . &&
        rm -f "${base%/*}/bare-$1"-*.tar && mv "$base.part" "$base"
    code=$?
    rm -rf "$new"
    return $code
}

machine_base() { # SUITE: false after a verdict
    [ "$(id -u)" = 0 ] || {
        t_skip machine "debootstrap and chroot need root"
        return 1
    }
    t_needs debootstrap=debootstrap || return 1
    find_base "$1" || {
        t_skip machine "no Debian mirror answers, and no machine is kept"
        return 1
    }
    [ -f "$base" ] || timed "make the bare machine" make_base "$1"
    [ -f "$base" ]
}

unpack_machine() { # in which dpkg does not wait for the disk after each file
    mkdir -p "$machine" && tar -C "$machine" -xf "$base" && chmod 755 "$machine" && cp /etc/resolv.conf /etc/hosts "$machine/etc/" &&
        echo force-unsafe-io >"$machine/etc/dpkg/dpkg.cfg.d/unsafe-io"
}

# The last commit, as a stranger would clone it.
clone_inside() { unpack_machine && git clone -q --no-hardlinks "$IBSHIFT_TOP" "$machine/root/ibshift"; }

# COMMAND in a folder of the machine: namespaces of its own, so that nothing of it outlives the test, and the machine as
# their root, so that what runs there can make and enter others.
enter() { # USER FOLDER COMMAND
    # shellcheck disable=SC2016
    unshare --mount --pid --ipc --fork --kill-child bash -c '
        machine=$1
        mount --make-rprivate / && mount --bind "$machine" "$machine" && mount -t proc proc "$machine/proc" &&
            mount --rbind /dev "$machine/dev" && mount -t tmpfs tmpfs "$machine/dev/shm" &&
            mount -t sysfs -o ro sysfs "$machine/sys" && mkdir -p "$machine/mnt/outside" &&
            cd "$machine" && pivot_root . mnt/outside || exit 1
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$([ "$2" = root ] && echo /root || echo "/home/$2")" TERM=dumb LC_ALL=C.UTF-8 \
            ${http_proxy:+http_proxy=$http_proxy} ${https_proxy:+https_proxy=$https_proxy} \
            chroot . bash -c "umount -l /mnt/outside && cd \"\$2\" && exec setpriv --reuid \"\$1\" --regid \"\$1\" --init-groups bash -c \"\$3\"" \
            bash "$2" "$3" "$4"' bash "$machine" "$@"
}

inside() { enter root /root/ibshift "$*"; } # COMMAND... in the clone

timed() { # NAME COMMAND...
    local start=$SECONDS
    t_fn "$@"
    echo "    $((SECONDS - start)) s"
}
