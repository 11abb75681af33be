"""ibshift beside the peers on one software HCA: tables, CSV, SVG."""
import argparse
import os
import sys

import placement
import plots
import report
import slowmotion
from argtypes import PLAIN, collectives, positive
from runner import measure

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def number(parser, text):
    """Of ranks."""
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        parser.error(f"--ranks wants numbers from 1 to 1024, not '{text}'")
    return int(text)


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench/run", description="ibshift beside tuned over openib and tuned over "
                                     "UCX, unmodified, on the same software HCA. The wire is this machine's memory, "
                                     "or with --wire a modelled one: neither is InfiniBand.")
    parser.add_argument("--ranks", help="numbers of ranks (default 2,4; one with --placements, there 16)")
    parser.add_argument("--per-host", type=int, metavar="N", help="ranks of a modelled host; all contenders may use "
                        "shared memory inside it; needs root (default: no shared memory, one where there is a wire)")
    parser.add_argument("--sizes", help="bytes of a block: A or A-B, doubling,... (default 1-1048576, in slow motion "
                        "8,512,4096,65536,1048576)")
    parser.add_argument("--tests", type=collectives, default=",".join(PLAIN), help="collectives as nbcbench names them, or all (default: without "
                        "those that take a count for every rank)")
    parser.add_argument("--repetitions", type=positive, default=30, help="samples a cell and round (default 30)")
    parser.add_argument("--rounds", type=positive, default=3, help="interleaved rounds, the median of which counts (3)")
    parser.add_argument("--nonblocking", action="store_true", help="the nonblocking collectives and their overlap too")
    parser.add_argument("--wire", default="", help="software HCA options, for example '--wire edr --scale 100'")
    parser.add_argument("--slow-motion", type=int, nargs="?", const=100, metavar="SCALE", help="a modelled HDR wire, "
                        "so many times slower than it is (100), so that what processors do is small beside it; ibshift "
                        "chooses by its parameters")
    parser.add_argument("--placements", nargs="?", const="1,2,3", metavar="SEEDS", help="instead: all-to-alls of 16 ranks, "
                        "or of --ranks up to 64, at random places of a modelled fabric, on the wall clock (seeds 1,2,3)")
    parser.add_argument("--scale", type=int, default=100, help="of its modelled time (100)")
    parser.add_argument("--block", type=int, default=262144, help="of its all-to-alls (262144)")
    parser.add_argument("--burst", default="", help="there: packets, or bytes like 16KiB, of one message that a modelled adapter "
                        "sends in a turn (softhca-run's own)")
    parser.add_argument("--no-fabric-file", action="store_true", help="there: ibshift knows no routes")
    parser.add_argument("--pace", default="", help="coll_ibshift_pace there (default: ibshift chooses)")
    parser.add_argument("--contenders", default="", help="there, instead of all: ibshift, tuned/openib, tuned/UCX, "
                        "pairwise/openib, pairwise/UCX")
    parser.add_argument("--eager", type=int, help="bytes up to which ibshift sends without a handshake (its default, in "
                        f"slow motion {slowmotion.EAGER_BYTES})")
    parser.add_argument("--model", default="", help="file with the model's parameters by which ibshift chooses")
    parser.add_argument("--limit", type=int, default=300, help="seconds that one run may take on a quiet machine, up to four "
                        "times as many where the load is high at the start (300)")
    parser.add_argument("--out", default=os.path.join("bench", "out"), help="folder of the CSV and SVG files")
    args = parser.parse_args()
    if args.slow_motion:
        args.wire = slowmotion.options(args.slow_motion)
        args.eager = args.eager or slowmotion.EAGER_BYTES
        args.sizes = args.sizes or "8,512,4096,65536,1048576"
    args.sizes = args.sizes or "1-1048576"
    args.ranks = [number(parser, text) for text in (args.ranks or ("16" if args.placements else "2,4")).split(",")]
    if args.placements and len(args.ranks) > 1:
        parser.error("--placements takes one number of ranks")
    if args.per_host is not None and (args.placements or args.per_host < 1 or any(p % args.per_host for p in args.ranks)):
        parser.error("--per-host wants a number that divides all of --ranks, and no --placements")
    return args


def write_pictures(table, out, subtitle):
    """All plots that the table has data for."""
    written = []
    for name, draw in (("ratio", plots.heat_map), ("size", plots.time_over_size), ("ranks", plots.time_over_ranks)):
        if name == "ranks" and len({k[1] for k in table}) < 2:
            continue
        path = os.path.join(out, name + ".svg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(draw(table, subtitle))
        written.append(path)
    return written


def main():
    """Returns the exit code: 1 when a contender failed."""
    args = arguments()
    os.chdir(TOP)
    os.makedirs(args.out, exist_ok=True)
    stage = os.path.join(os.environ.get("IBSHIFT_BUILD", os.path.join(TOP, "build")), "stage")
    if args.placements:
        args.ranks = args.ranks[0]
        return placement.main(stage, args)
    if args.slow_motion and not args.model:
        args.model = os.path.join(args.out, "model.txt")
        with open(args.model, "w", encoding="ascii") as file:
            file.write(slowmotion.model(args.slow_motion, args.per_host is not None))
    wire = args.wire.split()
    bench = ["-s", args.sizes, "-r", str(args.repetitions)]
    bench += ["-n"] if args.nonblocking else []
    more = ["--mca", "coll_ibshift_model", os.path.abspath(args.model)] if args.model else []
    more += slowmotion.component(args.eager) if args.eager else []
    # Natively each collective has runs of its own: the shorter one is, the more seldom are processors moved within it.
    tests = [args.tests] if wire else args.tests.split(",")
    table, failures, plans = measure(stage, wire, args.ranks, tests, bench, args.rounds, args.limit, more, args.per_host)
    for name, why in failures.items():
        sys.stderr.write(f"bench/run: {name} failed: {why}\n")
    if not table:
        return 1
    subtitle = "software HCA, " + (f"modelled wire {args.wire}" if wire else "native (memory speed, not a network)")
    subtitle += f", {args.per_host} ranks per host, which share memory" if args.per_host else ""
    names = [n for n in plots.COLOURS if any(n in cell for cell in table.values())]
    print(f"# {subtitle}; us, median of {args.rounds} interleaved rounds of {args.repetitions} samples")
    report.print_table(table, names, plans, sys.stdout)
    report.print_summary(table, sys.stdout)
    report.print_model(table, plans, sys.stdout)
    path = os.path.join(args.out, "collectives.csv")
    report.write_csv(table, path)
    print("written: " + ", ".join([path] + write_pictures(table, args.out, subtitle)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
