# Sourced by lanes. The commands of a page that are marked <!-- MARK -->, and whether they print what the page promises.
# shellcheck shell=bash

# Where the commands run: it looks like the checkout, and what they write is no part of it.
checkout_here() {
    local name
    mkdir -p "$IBSHIFT_OUT/here" && cd "$IBSHIFT_OUT/here" && ln -sfn "$IBSHIFT_BUILD" build || return
    for name in README.md bootstrap bench docs ompi test; do
        ln -sfn "$IBSHIFT_TOP/$name" .
    done
}

marked() { # PAGE K [MARK]: the commands of its block number K that is marked, with "runs" where nothing is said
    case $1 in
    *.md) marked_in '^```' '^```' "<!-- ${3-runs} -->" "$2" <"$IBSHIFT_TOP/$1" ;;
    *) marked_in '^[.](nf|EX)' '^[.](fi|EE)' ".\\\" ${3-runs}" "$2" <"$IBSHIFT_TOP/$1" | sed 's/\\-/-/g; s/\\(aq/'"'"'/g; s/\\e/\\/g' ;;
    esac
}

marked_in() { # BEGIN END MARK K
    mark_is=$3 awk -v begin="$1" -v end="$2" -v want="$4" '$0 == ENVIRON["mark_is"] { n++; mark = 1; next }
        inside && $0 ~ end { inside = 0 } !inside && $0 ~ begin { inside = mark && n == want; mark = 0; next }
        inside'
}

block() { # FILE: the commands one after the other, and what a comment behind "=>" promises is printed
    local promise said=$1.said
    [ -s "$1" ] || return 1
    # shellcheck disable=SC1090
    (set -eux && . "$1") >"$said" 2>&1 || { cat "$said"; return 1; }
    cat "$said"
    while IFS= read -r promise; do
        grep -qF -e "$promise" "$said" || { echo "nothing printed says: $promise"; return 1; }
    done < <(sed -n 's|.*# .*=> ||p; t; s|.*# => ||p' "$1")
}
