# Of a netlist: an aggregation node on every switch, and a router on the first; behind the other ports.
function add(name, guid, type, letter, last) {
    id = sprintf("%s-%016x", letter, guid)
    printf "[%d]\t\"%s\"[%d]\t\t# \"%s\"\n", ++ports, id, 1, name
    nodes = nodes sprintf("%s=0x%x\n%s\t1 \"%s\"\t\t# \"%s\"\n[1]\t%s[%d]\n\n", type == "Rt" ? "rtguid" : "caguid", guid, type, id, name, self, ports)
}
/^Switch/ { ports = $2; self = $3; sub(/\t[0-9]+ /, "\t" $2 + 1 + (count == 0) " "); inside = 1 }
inside && /^$/ {
    add("Mellanox Technologies Aggregation Node", 3221225472 + 16 * count, "Ca", "H")
    if (count++ == 0) { add("router RT", 4026531840, "Rt", "R") }
    inside = 0
}
{ print }
END { printf "%s", nodes }
