"""The software HCA's wire once more: an event simulation in Python that shares no code with it.

Reads an ibsim netlist and an opensm-lfts.dump, and simulates a shift all-to-all on them: in stage s,
rank r sends a block to rank r + s and goes on when that is acknowledged and the block of rank r - s
has arrived. Computing costs nothing. Rates are bytes per nanosecond, times nanoseconds.
"""

import heapq
import itertools
import re


class Fabric:
    """Who is cabled to whom, and where switches send a LID."""

    def __init__(self, netlist, tables):
        self.cable = {}  # (node, port) -> (node, port)
        self.name = {}  # node -> description
        self.lid = {}  # description of a host -> LID
        self.table = {}  # node -> {LID: port}
        self._read_netlist(netlist)
        self._read_tables(tables)
        self.node = {name: node for node, name in self.name.items()}

    def _read_netlist(self, path):
        node = None
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                head = re.match(r'(Switch|Ca|Hca)\s+\d+\s+"([^"]+)"\s*#\s*"([^"]*)"', line)
                link = re.match(r'\[(\d+)\]\s*"([^"]+)"\[(\d+)\]', line)
                if head:
                    node = head.group(2)
                    self.name[node] = head.group(3)
                elif link:
                    ends = (node, int(link.group(1))), (link.group(2), int(link.group(3)))
                    self.cable[ends[0]] = ends[1]
                    self.cable[ends[1]] = ends[0]

    def _read_tables(self, path):
        table = None
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                head = re.match(r"Unicast lids .* guid 0x([0-9a-f]+)", line)
                row = re.match(r"0x([0-9a-fA-F]+) (\d+) # Channel Adapter .*: '(.*)'", line)
                if head:
                    table = self.table.setdefault("S-" + head.group(1), {})
                elif row:
                    table[int(row.group(1), 16)] = int(row.group(2))
                    self.lid[row.group(3)] = int(row.group(1), 16)

    def route(self, source, target):
        """The links from one host to another, named by the port that sends into them."""
        links = [(self.node[source], 1)]
        at = self.cable[links[0]][0]
        while at != self.node[target]:
            links.append((at, self.table[at][self.lid[target]]))
            at = self.cable[links[-1]][0]
        return links


class Profile:
    """What a wire's hardware does, as softhca-run's report says it."""

    def __init__(self, text):
        match = re.search(
            r"cable ([\d.]+) GB/s, HCA ([\d.]+) GB/s, gap ([\d.]+) ns, HCA latency ([\d.]+) ns, hop ([\d.]+) ns",
            text,
        )
        if not match:
            raise ValueError("this is no report of a wire")
        self.cable, self.hca, self.gap, self.latency, self.hop = map(float, match.groups())


class Shift:
    """One shift all-to-all. routes(rank, rank) -> links; the first and the last are hosts' cables."""

    def __init__(self, profile, ranks, block, routes):
        self.profile, self.ranks, self.block, self.routes = profile, ranks, block, routes
        self.now = 0.0
        self.events = []
        self.order = itertools.count()
        self.left = {}  # flow (from, to) -> bytes
        self.links = {}  # flow -> links
        self.gate = [0.0] * ranks
        self.stage = [0] * ranks
        self.missing = [0] * ranks  # of send completion and block, in the present stage
        self.early = [set() for _ in range(ranks)]  # blocks that came before their stage
        self.most = {}  # link -> most flows at once

    def at(self, when, what, *args):
        heapq.heappush(self.events, (when, next(self.order), what, args))

    def rates(self):
        users = {}
        for flow in self.left:
            for link in self.links[flow]:
                users[link] = users.get(link, 0) + 1
        for link, count in users.items():
            self.most[link] = max(self.most.get(link, 0), count)
        rates = {}
        for flow in self.left:
            links = self.links[flow]
            hosts = {links[0], links[-1]}
            rates[flow] = min(
                (min(self.profile.cable, self.profile.hca) if link in hosts else self.profile.cable) / users[link]
                for link in links
            )
        return rates

    def next_stage(self, rank):
        self.stage[rank] += 1
        stage = self.stage[rank]
        if stage == self.ranks:
            return
        source = (rank - stage) % self.ranks
        self.missing[rank] = 1 if source in self.early[rank] else 2
        start = max(self.now, self.gate[rank])
        self.gate[rank] = start + self.profile.gap
        self.at(start, self.begin, rank, (rank + stage) % self.ranks)

    def begin(self, source, target):
        self.left[source, target] = float(self.block)
        self.links[source, target] = self.routes(source, target)

    def end(self, flow):
        source, target = flow
        del self.left[flow]
        latency = 2 * self.profile.latency + (len(self.links[flow]) - 1) * self.profile.hop
        self.at(self.now + latency, self.arrive, source, target)
        self.at(self.now + 2 * latency, self.one_less, source)

    def arrive(self, source, target):
        if (target - self.stage[target]) % self.ranks == source:
            self.one_less(target)
        else:
            self.early[target].add(source)

    def one_less(self, rank):
        self.missing[rank] -= 1
        if self.missing[rank] == 0:
            self.next_stage(rank)

    def run(self):
        """Nanoseconds until the last rank is through."""
        for rank in range(self.ranks):
            self.next_stage(rank)
        while self.events or self.left:
            rates = self.rates()
            ends = {flow: self.now + self.left[flow] / rates[flow] for flow in self.left}
            first = min(ends, key=ends.get) if ends else None
            is_event = self.events and (first is None or self.events[0][0] <= ends[first])
            when = self.events[0][0] if is_event else ends[first]
            for flow in self.left:
                self.left[flow] -= rates[flow] * (when - self.now)
            self.now = when
            if is_event:
                _, _, what, args = heapq.heappop(self.events)
                what(*args)
            else:
                self.end(first)
        return self.now


def shift_ms(profile, fabric, hosts, block):
    """Milliseconds of a shift over these hosts of the fabric, rank by rank."""
    shift = Shift(profile, len(hosts), block, lambda a, b: fabric.route(hosts[a], hosts[b]))
    return shift.run() / 1e6


def ideal_ms(profile, fabric, hosts, block):
    """The same if only hosts' cables could be shared: every flow has the switches to itself."""

    def routes(a, b):
        links = fabric.route(hosts[a], hosts[b])
        return [links[0]] + [(a, b, i) for i in range(1, len(links) - 1)] + [links[-1]]

    return Shift(profile, len(hosts), block, routes).run() / 1e6
