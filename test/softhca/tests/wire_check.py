#!/usr/bin/env python3
"""The wire against its second implementation, bench/softhca/wire_model.py.

  wire_check.py model WIRE_SHIFT REPORT     the model's times, without clocks
  wire_check.py report REPORT BLOCK         the report of softhca-shift on 16 hosts, byte by byte
  wire_check.py time REPORT BLOCK MS SCALE  a run took no less than the model says it must
"""

import os
import random
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path.insert(0, os.path.join(TOP, "bench", "softhca"))
sys.dont_write_bytecode = True
import wire_model  # noqa: E402

FOLDER = os.path.join(TOP, "test", "fabrics", "tree16")


def load(report):
    with open(report, encoding="utf-8") as file:
        text = file.read()
    fabric = wire_model.Fabric(os.path.join(FOLDER, "netlist"), os.path.join(FOLDER, "opensm-lfts.dump"))
    return wire_model.Profile(text), fabric, text


def in_routing_order():
    with open(os.path.join(FOLDER, "opensm-ftree-ca-order.dump"), encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t")[1] for line in lines if "DUMMY" not in line]


def as_numbers(profile, fabric, hosts, block):
    """What wire_shift.c reads."""
    number, rates, routes = {}, [], []
    limit = min(profile.cable, profile.hca)
    for a in hosts:
        for b in hosts:
            if a == b:
                continue
            links = fabric.route(a, b)
            for link in links:
                if link not in number:
                    number[link] = len(rates)
                    rates.append(limit if link in (links[0], links[-1]) else profile.cable)
            routes.append([len(links)] + [number[link] for link in links])
    head = [len(hosts), block, profile.hca, int(profile.gap), int(profile.latency), int(profile.hop), len(rates)]
    return " ".join(str(n) for n in head + rates + [n for route in routes for n in route])


def check_model(program, report):
    profile, fabric, _ = load(report)
    good = True
    for seed in range(5):
        hosts = in_routing_order()
        if seed:
            random.Random(seed).shuffle(hosts)
        hosts = hosts[: 16 - seed % 4]
        text = as_numbers(profile, fabric, hosts, 262144)
        done = subprocess.run([program], input=text, capture_output=True, text=True, timeout=60, check=True)
        ours, theirs = int(done.stdout) / 1e6, wire_model.shift_ms(profile, fabric, hosts, 262144)
        print(f"seed {seed}, {len(hosts)} ranks: {ours:.4f} ms, simulated {theirs:.4f} ms")
        # Equal times may be taken in another order, which moves what follows by a little.
        good = good and abs(ours / theirs - 1) < 1e-3 and (seed or abs(ours / theirs - 1) < 1e-5)
    return good


def check_report(report, block):
    _, fabric, text = load(report)
    hosts, expected = in_routing_order(), {}
    for a in hosts:
        for b in hosts:
            for node, port in fabric.route(a, b) if a != b else []:
                there, at = fabric.cable[node, port]
                name = f"{fabric.name[node]} port {port} -> {fabric.name[there]} port {at}"
                expected[name] = expected.get(name, 0) + block
    found, good = {}, True
    for line in text.splitlines():
        if not line.startswith("#"):
            count, most, _, name = line.split(None, 3)
            found[name] = int(count)
            good = good and 1 <= int(most) <= 16
    for name in sorted(set(found) | set(expected)):
        if found.get(name) != expected.get(name):
            print(f"{name}: {found.get(name)} bytes, expected {expected.get(name)}")
            good = False
    print(f"{len(found)} links, {sum(found.values())} bytes")
    return good


def check_time(report, block, ms, scale):
    profile, fabric, _ = load(report)
    least = wire_model.ideal_ms(profile, fabric, in_routing_order(), block) * scale
    print(f"{ms} ms, at least {least:.3f} ms")
    return ms >= least


def main():
    what, args = sys.argv[1], sys.argv[2:]
    if what == "model":
        return check_model(*args)
    if what == "report":
        return check_report(args[0], int(args[1]))
    return check_time(args[0], int(args[1]), float(args[2]), int(args[3]))


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
