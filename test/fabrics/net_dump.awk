# ibnetdiscover's output as ibdiagnet's .net_dump, of which nothing here has a recording: its columns as public readers
# of it have them. Ports without a cable are down.
function finish(  port) {
    for (port = last + 1; name != "" && port <= ports; port++) {
        down(port)
    }
    name = ""
}
function down(port) { printf "%d : %d : DOWN : POLL : N/A : N/A : N/A : N/A : N/A :  :  :  : \n", port, port }
BEGIN { print "# ibdiagnet's, as test/fabrics/net_dump.awk makes it" }
/^Switch/ {
    finish()
    split($0, part, "\"")
    ports = $2
    last = 0
    name = part[4]
    match($0, / lid [0-9]+/)
    printf "\n\"%s\", Mellanox, 0x%s, LID %d\n", name, substr(part[2], 3), substr($0, RSTART + 5, RLENGTH - 5)
    print "#    : IB#  : Sta  : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid : N# : NLID : Neighbor Description"
}
/^(Ca|$)/ { finish() }
/^\[/ && name != "" {
    split($0, part, "\"")
    match($0, /^\[[0-9]+/)
    port = substr($0, 2, RLENGTH - 1)
    match(part[3], /\[[0-9]+/)
    remote = substr(part[3], RSTART + 1, RLENGTH - 1)
    match(part[5], / lid [0-9]+/)
    while (++last < port) {
        down(last)
    }
    printf "%d : %d : ACT : LINK UP : 5 : 4x : 25.78125 : NO-FEC : NO-RTR : 0x%s : %d : %d : \"%s\"\n", port, port, substr(part[2], 3), remote,
        substr(part[5], RSTART + 5, RLENGTH - 5), part[4]
}
END { finish() }
