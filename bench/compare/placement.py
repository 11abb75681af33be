"""The all-to-all on a modelled fabric, on the wall clock: every contender at random places.

bench/run --placements does it. 16 ranks behind 4 leaf and 4 spine switches, one a host; the wire, its links and
the ideal are those of the software HCA's model, which has fair links and no buffers that fill up.
"""
import csv
import os
import subprocess
import sys

import plots
from contenders import common, contenders
from runner import Progress, RunFailed, run_once

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "bench", "softhca"))
sys.dont_write_bytecode = True
import wire_model  # noqa: E402

FOLDER = os.path.join(TOP, "test", "fabrics", "tree16")
NETLIST, TABLES = os.path.join(FOLDER, "netlist"), os.path.join(FOLDER, "opensm-lfts.dump")
WIRE, RANKS = "sdr", 16


def ideal_ms(stage, block, scale):
    """What the model takes when only the hosts' own cables are shared, stretched."""
    run = [os.path.join(stage, "bin", "softhca-run"), "--quiet", "--wire", WIRE, "--wire-report", "-", "--", "true"]
    profile = wire_model.Profile(subprocess.run(run, check=True, text=True, stdout=subprocess.PIPE).stdout)
    with open(os.path.join(FOLDER, "opensm-ftree-ca-order.dump"), encoding="utf-8") as lines:
        hosts = [line.rstrip("\n").split("\t")[1] for line in lines if "DUMMY" not in line]
    return wire_model.ideal_ms(profile, wire_model.Fabric(NETLIST, TABLES), hosts[:RANKS], block) * scale


def command(stage, seed, options, args):
    """One contender at one placement."""
    hca = [os.path.join(stage, "bin", "softhca-run"), "--quiet", "--wire", WIRE, "--scale", str(args.scale),
           "--fabric", NETLIST, "--lfts", TABLES, "--place", f"random:{seed}", "--"]
    bench = [os.path.join(stage, "bin", "nbcbench"), "-p", str(RANKS), "-l", "x", "-t", "MPI_Alltoall", "-w", "1",
             "-r", str(args.repetitions), "-s", f"{args.block}-{args.block}"]
    return hca + ["mpirun"] + common(RANKS) + options + ["-np", str(RANKS)] + bench


def bars(table, ideal, subtitle):
    """One group of bars a placement; the line is the ideal."""
    left, base, height, width = 60, 340, 250, 46
    highest = max(t for row in table.values() for t in row.values()) * 1.05
    body, x = [], left
    for seed, row in table.items():
        start = x
        for name, t in row.items():
            h = height * t / highest
            body.append(f'<rect x="{x}" y="{base - h:.1f}" width="{width - 4}" height="{h:.1f}" '
                        f'fill="{plots.COLOURS[name]}"/>')
            body.append(plots.text(x + width / 2 - 2, base - h - 4, f"{t:.0f}", 11, "middle"))
            x += width
        body.append(plots.text((start + x) / 2, base + 18, f"random, seed {seed}", 12, "middle"))
        x += 30
    y = base - height * ideal / highest
    body.append(f'<line x1="{left - 10}" x2="{x}" y1="{y:.1f}" y2="{y:.1f}" stroke="black" stroke-dasharray="5 3"/>')
    body.append(plots.text(x + 4, y + 4, f"ideal {ideal:.0f} ms", 12))
    for i, name in enumerate(plots.COLOURS):
        body.append(f'<rect x="{left + i * 130}" y="372" width="12" height="12" fill="{plots.COLOURS[name]}"/>')
        body.append(plots.text(left + i * 130 + 18, 382, name, 12))
    return plots.page(x + 120, 400, "All-to-all at random places, wall-clock ms", subtitle, body)


def measure(stage, args):
    """{seed: {contender: ms}}, the median of each run; contenders that fail are told and left out."""
    tree = os.path.join(args.out, "tree16")
    compiler = [os.path.join(stage, "bin", "ibshift"), "fabric", "compile", "--output", tree, NETLIST, TABLES]
    subprocess.run(compiler, check=True, stdout=subprocess.DEVNULL)
    more = ["--mca", "coll_ibshift_fabric", os.path.abspath(tree)]
    more += ["--mca", "coll_ibshift_pace", args.pace] if args.pace else []
    who = contenders(os.path.join(stage, "lib", "openmpi"), more)
    seeds = [int(seed) for seed in args.placements.split(",")]
    progress = Progress(len(seeds) * len(who))
    table, bad = {}, 0
    for seed in seeds:
        table[seed] = {}
        for name, options in who.items():
            progress.step(f"{name}, placement {seed}")
            try:
                rows, _ = run_once(command(stage, seed, options, args), args.limit)
                table[seed][name] = float(rows[0]["t_mpi"]) / 1000
            except RunFailed as failure:
                sys.stderr.write(f"bench/run: {name} failed: {failure}\n")
                bad += 1
    progress.close()
    return table, bad


def main(stage, args):
    """Table, CSV and picture; the exit code."""
    ideal = ideal_ms(stage, args.block, args.scale)
    table, bad = measure(stage, args)
    subtitle = f"software HCA, modelled wire {WIRE}, scale {args.scale}, 4x4 leaf/spine, {RANKS} ranks, {args.block} B"
    print(f"# {subtitle}; wall-clock ms, median of {args.repetitions}; the model's ideal {ideal:.1f}")
    print(f"{'placement':<12}" + "".join(f"{name:>14}" for name in plots.COLOURS) + f"{'of the ideal':>14}{'faster than':>13}")
    csv_path, svg_path = (os.path.join(args.out, "placements." + end) for end in ("csv", "svg"))
    with open(csv_path, "w", encoding="ascii", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["placement", "contender", "ms", "ideal_ms"])
        for seed, row in table.items():
            ours = row.get("ibshift", 0)
            peers = [t for name, t in row.items() if name != "ibshift"]
            print(f"{'random ' + str(seed):<12}" + "".join(f"{row.get(name, float('nan')):14.1f}" for name in plots.COLOURS)
                  + f"{ours / ideal:14.3f}" + (f"{min(peers) / ours:13.2f}" if peers and ours else f"{'-':>13}"))
            writer.writerows([seed, name, f"{t:.3f}", f"{ideal:.3f}"] for name, t in row.items())
    if any(table.values()):
        with open(svg_path, "w", encoding="utf-8") as file:
            file.write(bars(table, ideal, subtitle))
    print(f"written: {csv_path}, {svg_path}")
    return 1 if bad else 0
