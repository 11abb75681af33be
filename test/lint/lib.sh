# Sourced by the checks: the source files of a checkout or of an unpacked tarball.
# shellcheck shell=bash
source_files() { # PATTERN...: names of all source files that fit; call it in the top folder
    local fits=(-false) pattern
    if [ -e .git ]; then
        git ls-files --cached --others --exclude-standard "$@"
        return
    fi
    for pattern in "${@:-*}"; do
        fits+=(-o -name "$pattern")
    done
    # Autotools' own files are not ours to check.
    find . \( -path './build*' -o -path ./config -o -path ./configure -o -path ./bench/out -o -name .libs \) -prune -o \
        -type f \( "${fits[@]}" \) -printf '%P\n'
}
