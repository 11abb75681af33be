#!/usr/bin/env python3
"""levels.py RECORDS FABRIC REPORT IBSHIFT HOSTS: bytes of an all-to-all by service level, as the wire's report counts them,
are in the proportion of the pairs of the first HOSTS hosts in routing order that have the level in the records."""

import re
import subprocess
import sys
from collections import Counter

records, fabric, report, ibshift, hosts = sys.argv[1:]
level, source = {}, None
for line in open(records, encoding="utf-8"):
    if line.startswith("Channel Adapter"):
        source = int(re.search(r"base LID (\d+)", line)[1])
    elif match := re.match(r"\s*(slid|dlid|sl)\.+(\S+)$", line):  # saquery
        name, value = match[1], int(match[2], 0)
        if name == "dlid":
            target = value
        elif name == "slid":
            source = value
        else:
            level[source, target] = value
    elif line.startswith("0x"):
        lid, sl = line.split(":")[:2]
        level[source, int(lid, 16)] = int(sl)
order = subprocess.run([ibshift, "fabric", "order", fabric], check=True, capture_output=True, text=True).stdout
lids = [int(line.split()[0], 16) for line in order.splitlines()][: int(hosts)]
pairs = Counter(level[a, b] for a in lids for b in lids if a != b)
with open(report, encoding="utf-8") as file:
    sent = {int(sl): int(count) for sl, count in re.findall(r"^# service level (\d+): (\d+) bytes", file.read(), re.M)}
print("pairs by level", dict(pairs), "bytes by level", sent)
assert len(pairs) > 1 and set(pairs) == set(sent), "other levels than those of the pairs"
each = sum(sent.values()) / sum(pairs.values())
for sl, count in pairs.items():
    assert abs(sent[sl] / count - each) < 0.05 * each, f"level {sl}: {sent[sl] / count:.0f} bytes a pair, {each:.0f} on average"
