"""Compares the tables that ibshift wrote with those that a subnet manager carried, and with walks.

usage: carry.py tables OURS CARRIED                   every entry of ours is in CARRIED, for the same port GUID
       carry.py live OURS CARRIED                     the same, but for a top LID that dump_fts leaves out
       carry.py pairs OURS CARRIED NETLIST COUNT SEED  prints "SLID DLID" of sampled pairs, a line each
       carry.py walks OURS CARRIED NETLIST WALKS       ibtracert's walks, each after a line "pair SLID DLID",
                                                       are the ways that OURS gives

CARRIED is dump_fts output or opensm-lfts.dump; its LIDs differ from ours, port GUIDs do not.
"""
import random
import re
import sys

HEADER = re.compile(r"Unicast lids .* guid (0x[0-9a-f]+)")
ROW = re.compile(r"^0x([0-9a-f]+) (\d+) .*portguid (0x[0-9a-f]+)")
CABLE = re.compile(r'^\[(\d+)\]\s*"([SHR])-([0-9a-f]+)"\[(\d+)\]')


def read_tables(name):
    """({switch GUID: {(port GUID, lane): port}}, {port GUID: base LID})."""
    rows, base = [], {}
    guid = None
    with open(name, encoding="ascii", errors="replace") as text:
        for line in text:
            header, row = HEADER.match(line), ROW.match(line)
            if header:
                guid = int(header[1], 16)
            elif row and guid is not None:
                lid, owner = int(row[1], 16), int(row[3], 16)
                rows.append((guid, owner, lid, int(row[2])))
                base[owner] = min(lid, base.get(owner, lid))
    tables = {}
    for guid, owner, lid, port in rows:
        tables.setdefault(guid, {})[(owner, lid - base[owner])] = port
    return tables, base


def read_netlist(name):
    """{(node GUID, port): (node GUID, port)} of all cables, GUIDs of hosts, of routers and aggregation nodes."""
    cables, hosts, others, node = {}, [], [], None
    with open(name, encoding="ascii") as text:
        for line in text:
            record = re.match(r'^(Switch|Ca|Rt)\s+\d+ "[SHR]-([0-9a-f]+)"(.*)', line)
            cable = CABLE.match(line)
            if record:
                node = int(record[2], 16)
                if record[1] == "Rt" or "Aggregation Node" in record[3]:
                    others.append(node)
                elif record[1] == "Ca":
                    hosts.append(node)
            elif cable:
                cables[(node, int(cable[1]))] = (int(cable[3], 16), int(cable[4]))
    return cables, hosts, others


def compare(ours, carried, skipped):
    wrong = entries = 0
    for guid, table in ours.items():
        for key, port in table.items():
            if key == skipped:
                continue
            entries += 1
            found = carried.get(guid, {}).get(key)
            if found != port:
                wrong += 1
                if wrong < 5:
                    print("switch 0x%x to port 0x%x + %d: %s, wrote %d" % (guid, key[0], key[1], found, port))
    print("%d entries of %d switches, %d differ" % (entries, len(ours), wrong))
    return wrong == 0 and entries > 0


def lost_by_dump_fts(ours, base):
    """infiniband-diags to 44 leave the top LID out where it is a multiple of 64: its key, or None."""
    top = max(base.values())
    lost = {key for table in ours.values() for key in table} - {(o, lane) for o in base for lane in range(128)}
    return lost.pop() if len(lost) == 1 and (top + 1) % 64 == 0 else None


def read_walks(name):
    """[(SLID, DLID, ports left)]."""
    walks = []
    with open(name, encoding="ascii", errors="replace") as text:
        for line in text:
            pair, step = re.match(r"^pair (\d+) (\d+)", line), re.match(r"^\[(\d+)\] ->", line)
            if pair:
                walks.append((int(pair[1]), int(pair[2]), []))
            elif step:
                walks[-1][2].append(int(step[1]))
    return walks


def own_walk(tables, cables, source, goal, lane):
    """Ports left, from the host's own on."""
    walk, at = [1], cables[(source, 1)]
    while at[0] in tables:
        port = tables[at[0]][(goal, lane)]
        walk.append(port)
        at = cables[(at[0], port)]
    return walk, at[0]


def main(argv):
    ours, _ = read_tables(argv[2])
    carried, base = read_tables(argv[3])
    if argv[1] == "tables":
        return 0 if compare(ours, carried, None) else 1
    if argv[1] == "live":
        return 0 if compare(ours, carried, lost_by_dump_fts(ours, base)) else 1
    cables, hosts, others = read_netlist(argv[4])
    port_guid = {guid: guid + 1 for guid in hosts + others}  # as the generator and ibsim number them
    if argv[1] == "pairs":
        chance = random.Random(int(argv[6]))
        for _ in range(int(argv[5])):
            one = chance.choice(hosts)
            other = chance.choice([guid for guid in hosts + others if guid != one])
            lanes = 1 + max(lane for owner, lane in next(iter(carried.values())) if owner == port_guid[other])
            print(base[port_guid[one]], base[port_guid[other]] + chance.randrange(lanes))
        return 0
    owner_of = {lid: owner for owner, lid in base.items()}
    host_at = {base[port_guid[guid]]: guid for guid in hosts + others}
    walks = read_walks(argv[5])
    for source, goal, found in walks:
        top = max(lid for lid in owner_of if lid <= goal)
        wanted, end = own_walk(ours, cables, host_at[source], owner_of[top], goal - top)
        if found != wanted or port_guid.get(end) != owner_of[top]:
            print("%d to %d: ibtracert left ports %s, the tables say %s" % (source, goal, found, wanted))
            return 1
    print("%d walks of ibtracert go as the tables say" % len(walks))
    return 0 if walks else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
