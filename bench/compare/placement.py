"""The all-to-all on a modelled fabric, on the wall clock: every contender at random places.

bench/run --placements does it. One rank a host behind as many leaf as spine switches; the wire, its links and the
ideal are those of the software HCA's model, which has fair links and no buffers that fill up.

Open MPI's tuned sends all blocks at once to few ranks, and pairwise, one after another, to many: the contenders named
pairwise are tuned with that algorithm asked for at any number of ranks.
"""
import csv
import os
import subprocess
import sys

import plots
from contenders import common, contenders, pairwise
from runner import Progress, RunFailed, run_once

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "bench", "softhca"))
sys.dont_write_bytecode = True
import wire_model  # noqa: E402

WIRE = "sdr"
OURS, TUNED, PAIRWISE = "ibshift", ("tuned/openib", "tuned/UCX"), ("pairwise/openib", "pairwise/UCX")
COLOURS = dict(plots.COLOURS, **{"pairwise/openib": "#d55e00", "pairwise/UCX": "#cc79a7"})


class Tree:
    """A recorded leaf/spine fabric: as many hosts on a leaf as there are spines."""

    def __init__(self, hosts, leaves):
        self.leaves = leaves
        self.folder = os.path.join(TOP, "test", "fabrics", f"tree{hosts}")
        self.netlist = os.path.join(self.folder, "netlist")
        self.tables = os.path.join(self.folder, "opensm-lfts.dump")

    def hosts(self):
        """Their names, in routing order."""
        with open(os.path.join(self.folder, "opensm-ftree-ca-order.dump"), encoding="utf-8") as lines:
            return [line.rstrip("\n").split("\t")[1] for line in lines if "DUMMY" not in line]


TREES = {16: Tree(16, 4), 64: Tree(64, 8)}


def ideal_ms(stage, tree, ranks, block, scale):
    """What the model takes when only the hosts' own cables are shared, stretched."""
    run = [os.path.join(stage, "bin", "softhca-run"), "--quiet", "--wire", WIRE, "--wire-report", "-", "--", "true"]
    profile = wire_model.Profile(subprocess.run(run, check=True, text=True, stdout=subprocess.PIPE).stdout)
    fabric = wire_model.Fabric(tree.netlist, tree.tables)
    return wire_model.ideal_ms(profile, fabric, tree.hosts()[:ranks], block) * scale


def command(stage, tree, name, options, seed, args):
    """One contender at one placement."""
    hca = [os.path.join(stage, "bin", "softhca-run"), "--quiet", "--arm-waiting", "--wire", WIRE, "--scale", str(args.scale),
           "--fabric", tree.netlist, "--lfts", tree.tables, "--place", f"random:{seed}", "--"]
    hca[-1:-1] = ["--burst", args.burst] if args.burst else []
    bench = [os.path.join(stage, "bin", "nbcbench"), "-p", str(args.ranks), "-l", "x", "-t", "MPI_Alltoall", "-w", "1",
             "-r", str(args.repetitions), "-s", f"{args.block}-{args.block}"]
    return hca + ["mpirun"] + common(args.ranks) + options + ["-np", str(args.ranks)] + bench


def legend(names, left, y):
    """A square and a name for each contender."""
    body = []
    for i, name in enumerate(names):
        body.append(f'<rect x="{left + i * 130}" y="{y}" width="12" height="12" fill="{COLOURS[name]}"/>')
        body.append(plots.text(left + i * 130 + 18, y + 10, name, 12))
    return body


def bars(table, names, ideal, subtitle):
    """One group of bars a placement; the line is the ideal."""
    left, base, height, width = 60, 340, 250, 46
    highest = max(t for row in table.values() for t in row.values()) * 1.05
    body, x = [], left
    for seed, row in table.items():
        start = x
        for name in names:
            h = height * row.get(name, 0) / highest
            body.append(f'<rect x="{x}" y="{base - h:.1f}" width="{width - 4}" height="{h:.1f}" '
                        f'fill="{COLOURS[name]}"/>')
            body.append(plots.text(x + width / 2 - 2, base - h - 4, f"{row[name]:.0f}" if name in row else "-", 11, "middle"))
            x += width
        body.append(plots.text((start + x) / 2, base + 18, f"random, seed {seed}", 12, "middle"))
        x += 30
    y = base - height * ideal / highest
    body.append(f'<line x1="{left - 10}" x2="{x}" y1="{y:.1f}" y2="{y:.1f}" stroke="black" stroke-dasharray="5 3"/>')
    body.append(plots.text(x + 4, y + 4, f"ideal {ideal:.0f} ms", 12))
    return plots.page(max(x + 120, left + 130 * len(names)), 400, "All-to-all at random places, wall-clock ms", subtitle,
                      body + legend(names, left, 372))


def measure(stage, tree, who, args):
    """{seed: {contender: ms}}, the median of each run; contenders that fail are told and left out."""
    seeds = [int(seed) for seed in args.placements.split(",")]
    progress = Progress(len(seeds) * len(who))
    table, bad = {}, 0
    for seed in seeds:
        table[seed] = {}
        for name, options in who.items():
            progress.step(f"{name}, placement {seed}")
            try:
                rows, _ = run_once(command(stage, tree, name, options, seed, args), args.limit)
                table[seed][name] = float(rows[0]["t_mpi"]) / 1000
            except RunFailed as failure:
                sys.stderr.write(f"bench/run: {name} failed: {failure}\n")
                bad += 1
    progress.close()
    return table, bad


def chosen(stage, tree, args):
    """{contender: mpirun options}, as --contenders names them."""
    compiled = os.path.abspath(os.path.join(args.out, os.path.basename(tree.folder)))
    compiler = [os.path.join(stage, "bin", "ibshift"), "fabric", "publish", "--output", compiled, tree.netlist, tree.tables]
    subprocess.run(compiler, check=True, stdout=subprocess.DEVNULL)
    more = [] if args.no_fabric_file else ["--mca", "coll_ibshift_fabric", compiled]
    more += ["--mca", "coll_ibshift_pace", args.pace] if args.pace else []
    who = dict(contenders(os.path.join(stage, "lib", "openmpi"), more), **pairwise())
    names = args.contenders.split(",") if args.contenders else list(who)
    for name in names:
        if name not in who:
            raise SystemExit(f"bench/run: --contenders: there is no '{name}', only {', '.join(who)}")
    return {name: who[name] for name in names}


def gain(row, peers):
    """How many times faster ibshift is than the better of these; "-" where one is missing."""
    times = [row[name] for name in peers if name in row]
    return f"{min(times) / row[OURS]:.2f}" if times and OURS in row else "-"


def print_table(table, names, ideal):
    """Milliseconds, ibshift's share of the ideal, and how many times faster than the better peer."""
    print(f"{'placement':<12}" + "".join(f"{name:>17}" for name in names)
          + f"{'of the ideal':>14}{'x of tuned':>12}{'x of pairwise':>15}")
    for seed, row in table.items():
        share = f"{row[OURS] / ideal:.3f}" if OURS in row else "-"
        print(f"{'random ' + str(seed):<12}" + "".join(f"{row.get(name, float('nan')):17.1f}" for name in names)
              + f"{share:>14}{gain(row, TUNED):>12}{gain(row, PAIRWISE):>15}")


def main(stage, args):
    """Table, CSV and picture; the exit code."""
    if not 2 <= args.ranks <= max(TREES):
        raise SystemExit(f"bench/run: --placements wants 2 to {max(TREES)} ranks, not {args.ranks}")
    tree = TREES[min(hosts for hosts in TREES if hosts >= args.ranks)]
    who = chosen(stage, tree, args)
    names = list(who)
    args.ideal = ideal = ideal_ms(stage, tree, args.ranks, args.block, args.scale)
    table, bad = measure(stage, tree, who, args)
    subtitle = (f"software HCA, modelled wire {WIRE}, scale {args.scale}, {tree.leaves}x{tree.leaves} leaf/spine, "
                f"{args.ranks} ranks, {args.block} B")
    subtitle += f", bursts of {args.burst}" if args.burst else ""
    subtitle += ", no fabric file" if args.no_fabric_file else ""
    print(f"# {subtitle}; wall-clock ms, median of {args.repetitions}; the model's ideal {ideal:.1f}")
    print_table(table, names, ideal)
    csv_path, svg_path = (os.path.join(args.out, f"placements-{args.ranks}." + end) for end in ("csv", "svg"))
    with open(csv_path, "w", encoding="ascii", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["placement", "contender", "ms", "ideal_ms"])
        for seed, row in table.items():
            writer.writerows([seed, name, f"{t:.3f}", f"{ideal:.3f}"] for name, t in row.items())
    if any(table.values()):
        with open(svg_path, "w", encoding="utf-8") as file:
            file.write(bars(table, names, ideal, subtitle))
    print(f"written: {csv_path}, {svg_path}")
    return 1 if bad else 0
