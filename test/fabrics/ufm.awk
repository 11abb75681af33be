# ibnetdiscover's output as UFM's JSON, whose rows are those of its REST interface with a few of their fields; -v what=ports or links.
function end(prefix, guid, port, lid, name, is_switch,  dname) {
    dname = is_switch ? port : "HCA-1/" port
    if (what == "links") {
        return sprintf("\"%s_guid\": \"%s\", \"%s_port\": \"%d\", \"%s_port_dname\": \"%s\", \"%s_port_node_description\": \"%s\"", prefix, guid,
            prefix, port, prefix, dname, prefix, name (is_switch ? ":" port : ""))
    }
    return sprintf(prefix == "" ? "\"guid\": \"%s\", \"number\": %d, \"name\": \"\\u0041\\\"%s_%d\", \"lid\": %d, \"dname\": \"%s\", \"node_description\": \"%s\"" : \
        "\"peer\": \"%s_%d\", \"peer_guid\": \"%s\", \"peer_number\": [{\"%d\": \"]\"}], \"peer_lid\": %d, \"peer_port_dname\": \"%s\", \"peer_node_description\": \"%s\"",
        guid, port, guid, port, lid, dname, name (is_switch ? ":" port : ""))
}
BEGIN { printf "[" }
/^(Switch|Ca)/ {
    split($0, part, "\"")
    is_switch = /^Switch/
    name = part[4]
    guid = substr(part[2], 3)
    match($0, / lid [0-9]+/)
    lid = is_switch ? substr($0, RSTART + 5, RLENGTH - 5) : 0
}
/^\[/ {
    match($0, /^\[[0-9]+/)
    port = substr($0, 2, RLENGTH - 1)
    if (!is_switch) {
        match($0, /\([0-9a-f]+\)/)
        guid = sprintf("%16s", substr($0, RSTART + 1, RLENGTH - 2))
        gsub(/ /, "0", guid)
        match($0, / lid [0-9]+ lmc/)
        lid = $0
        sub(/.*# lid /, "", lid)
        lid += 0
    }
    split($0, part, "\"")
    remote_is_switch = part[2] ~ /^S/
    match(part[3], /\[[0-9]+/)
    remote = substr(part[3], RSTART + 1, RLENGTH - 1)
    far = substr(part[2], 3)
    if (!remote_is_switch) {
        match(part[3], /\([0-9a-f]+\)/)
        far = sprintf("%16s", substr(part[3], RSTART + 1, RLENGTH - 2))
        gsub(/ /, "0", far)
    }
    match(part[5], / lid [0-9]+/)
    far_lid = substr(part[5], RSTART + 5, RLENGTH - 5)
    if (what == "links" && (far < guid || (far == guid && remote < port))) {
        next # a cable comes once
    }
    swapped = what == "links" && count % 2 # the source of a link may be either end
    near_end = end(what == "links" ? (swapped ? "destination" : "source") : "", guid, port, lid, name, is_switch)
    far_end = end(what == "links" ? (swapped ? "source" : "destination") : "peer", far, remote, far_lid, part[4], remote_is_switch)
    printf "%s{%s, \"capabilities\": [\"reset\", {\"a\": \"}\"}], %s, ", count++ ? "," : "", swapped ? far_end : near_end, swapped ? near_end : far_end
    printf what == "links" ? "\"width\": \"4x\"}\n" : "\"description\": \"%s IB Port\", \"active_width\": \"4x\", \"active_speed\": \"SDR\", \"logical_state\": \"Active\"}\n", is_switch ? "Switch" : "Computer"
}
END { print "]" }
