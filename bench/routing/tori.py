"""Table 2 of "Routing in InfiniBand torus network topologies": routes between switches, counted on forwarding tables."""
import os
import re
import subprocess

import opensm

# torus: {algorithm of the paper: (average distance, crossing paths, deviation)}
PAPER = {
    "4x4": {"updn": (2.13, 12, 2.77), "flexible": (2.13, 8, 0.00), "ecube": (2.13, 10, 0.75)},
    "6x6": {"updn": (3.31, 56, 13.60), "flexible": (3.31, 43, 10.55), "ecube": (3.08, 30, 1.35)},
    "8x8": {"updn": (4.57, 209, 43.30), "flexible": (4.57, 106, 28.50), "ecube": (4.06, 70, 2.19)},
    "3x3x3": {"updn": (2.07, 15, 2.81), "flexible": (2.07, 9, 0.00), "ecube": (2.07, 9, 0.00)},
    "4x4x4": {"updn": (3.04, 75, 14.53), "flexible": (3.04, 32, 0.00), "ecube": (3.04, 48, 8.89)},
}
THEIRS = ["dor", "torus-2QoS", "updn"]


def graph(path):
    """({(switch guid, port): switch guid}, {port guid of a host: its switch}) of a netlist with one host a switch."""
    with open(path, encoding="ascii") as text:
        records = text.read().split("\n\n")
    cables, hosts = {}, {}
    for record in records:
        own = re.search(r'^(Switch|Ca)\s+\d+ "[SH]-([0-9a-f]+)"', record, re.M)
        if own is None:
            continue
        for port, kind, peer in re.findall(r'^\[(\d+)\]\s*"([SH])-([0-9a-f]+)"', record, re.M):
            if own[1] == "Switch" and kind == "S":
                cables[own[2], int(port)] = peer
            elif own[1] == "Ca":
                hosts["%016x" % (int(own[2], 16) + int(port))] = peer
    return cables, hosts


def tables(path):
    """{switch guid: {port guid of a host: port}}."""
    found, rows = {}, None
    with open(path, encoding="ascii", errors="replace") as text:
        for line in text:
            head = re.search(r"guid 0x([0-9a-f]+) \(", line) if line.startswith("Unicast lids") else None
            if head:
                rows = found.setdefault(head[1].rjust(16, "0"), {})
                continue
            row = re.match(r"0x[0-9a-fA-F]+\s+(\d+)\s.*portguid 0x([0-9a-f]+)", line)
            if row:
                rows[row[2].rjust(16, "0")] = int(row[1])
    return found


def figures(net, lfts):
    """(average distance, most paths over a channel, standard deviation over all channels); None: a route fails."""
    cables, hosts = graph(net)
    rows, load, links, routes = tables(lfts), dict.fromkeys(cables, 0), 0, 0
    for guid, goal in hosts.items():
        for start in set(hosts.values()) - {goal}:
            at, steps = start, 0
            while at != goal:
                channel = (at, rows.get(at, {}).get(guid, 0))
                if channel not in cables or steps > len(cables):
                    return None
                load[channel] += 1
                at, steps = cables[channel], steps + 1
            links, routes = links + steps, routes + 1
    mean = sum(load.values()) / len(load)
    deviation = (sum((n - mean) ** 2 for n in load.values()) / len(load)) ** 0.5
    return links / routes, max(load.values()), deviation


def guids(net):
    """{name of a switch: its GUID}."""
    with open(net, encoding="ascii") as text:
        found = re.findall(r'^Switch\s+\d+ "S-([0-9a-f]+)"\s+# "(s1-\d+)"', text.read(), re.M)
    return {name: guid for guid, name in found}


def root_file(net, folder):
    """For updn, which finds no root in a torus: the first switch."""
    path = os.path.join(folder, "first-switch")
    with open(path, "w", encoding="ascii") as out:
        out.write("0x%s\n" % guids(net)["s1-00000"])
    return path


def torus_conf(shape, net, folder):
    """What torus-2QoS wants to be told: the seed of its axes, from the names of the generator's first switches."""
    path = os.path.join(folder, "torus.conf")
    sizes, guid = [int(n) for n in shape.split("x")], guids(net)
    lines, step = ["torus " + " ".join(map(str, (sizes + [1])[:3]))], 1
    for axis, size in zip("xyz", sizes):
        lines.append("%sp_link 0x%s 0x%s" % (axis, guid["s1-00000"], guid["s1-%05d" % step]))
        lines.append("%sm_link 0x%s 0x%s" % (axis, guid["s1-00000"], guid["s1-%05d" % (step * (size - 1))]))
        step *= size
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")
    return path


def measure(shape):
    """[(who, engine, figures or None)]."""
    fabric, rows = "torus:%s,1" % shape, []
    with opensm.Subnet(fabric) as subnet:
        for engine in ("updn", "flexible", "ecube"):
            path = os.path.join(subnet.work, "ours-" + engine)
            # ecube's tables have no credit loop with its SLs and VLs, which are not counted here.
            run = subprocess.run([opensm.IBSHIFT, "route", engine, fabric, "--force", "-o", path], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, check=False)
            rows.append(("ibshift", engine, figures(subnet.net, path) if run.returncode == 0 else None))
        for engine in THEIRS:
            more = {"torus-2QoS": ["--torus_config", torus_conf(shape, subnet.net, subnet.work)],
                    "updn": ["-a", root_file(subnet.net, subnet.work)]}.get(engine, [])
            run = subnet.route(engine, with_roots=False, more=more)
            lfts = os.path.join(run["out"], "opensm-lfts.dump")
            rows.append(("OpenSM", engine, figures(subnet.net, lfts) if run["routed"] == engine else None))
    return rows
