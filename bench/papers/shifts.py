"""Zahavi et al. 2009, Tables II and III: shifts of processors on 256 nodes of four, and what two applications exchange."""
import os
import subprocess

import routes

TREE = "pgft:2;12,24;1,12;1,1"  # a switch of 288 ports from chips of 24, as the paper's ISR 9288
PER_HOST = 4
SDR = ["--rate", "8000"]


def exchange(args, name, pairs, size):
    """A file of blocks for `ibshift sim --sizes`."""
    path = os.path.join(args.output, name)
    with open(path, "w", encoding="ascii") as out:
        out.writelines("%d %d %d\n" % (source, target, size) for source, target in pairs)
    return path


def shift(ranks, *distances):
    """Each rank to those so far behind, where there is one: the paper's shift does not wrap."""
    return [(r, r + d) for d in distances for r in range(ranks) if 0 <= r + d < ranks]


def hosts_of(args, fabric, count):
    """So many hosts in the order of the tables: --hosts places ranks along it."""
    path = fabric + ".%d.hosts" % count
    order = subprocess.run([routes.IBSHIFT, "fabric", "order", fabric], capture_output=True, text=True, check=True).stdout
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(line.split("\t")[1].split()[0] + "\n" for line in order.splitlines()[:count])
    return path


def ways_of(args, count):
    """{label: (tables, hosts)}; minhop both ways, for no text says where the paper's ranks sat in its order."""
    ftree, minhop = (routes.by_opensm(args.tables, TREE, engine) for engine in ("ftree", "minhop"))
    return {"fat-tree": (ftree, hosts_of(args, ftree, count)), "minhop, in order": (minhop, hosts_of(args, minhop, count)),
            "minhop, at random": (minhop, "random:%d:1" % count)}


def time_of(args, way, sizes, name):
    """Milliseconds. The name of the matrix is what its cell is kept by."""
    fabric, hosts = way
    return 1e3 * args.cells.simulate(fabric, ["--hosts", hosts, "--ranks-per-host", str(PER_HOST), "--order", "rank",
                                              "--sizes", exchange(args, name, *sizes)] + SDR)["time"]


def table2(args):
    """A shift of 1 MB over distances up to 127 processors."""
    printed = {1024: (5.4, 6.1, 16.0, 22.0), 512: (5.4, 6.1, 14.7, 22.0), 256: (5.4, 6.1, 13.4, 22.0)}
    distances = (1, 64, 127) if args.quick else range(1, 128, 18)
    print("\nZahavi et al. 2009, Table II: a shift of 1 MB, average (worst) over the distances, ms; the paper's behind it")
    rows = []
    for ranks, paper in printed.items():
        for way, where in ways_of(args, ranks // PER_HOST).items():
            times = [time_of(args, where, (shift(ranks, d), 1 << 20), "shift-%d-%d" % (ranks, d)) for d in distances]
            average, worst = sum(times) / len(times), max(times)
            of_paper = paper[:2] if way == "fat-tree" else paper[2:]
            rows.append([ranks, way, "%.4f" % average, "%.4f" % worst, *of_paper])
            print("%5d %-18s %5.1f (%.1f)   %5.1f (%.1f)" % (ranks, way, average, worst, *of_paper), flush=True)
    args.write("table2", ["ranks", "way", "average", "worst", "printed average", "printed worst"], rows)


def table3(args):
    """What SAGE and Partisn exchange on 1,024 processors: shifts of 24; a grid of 32 x 32."""
    print("\nZahavi et al. 2009, Table III: time of one exchange of 64 KiB blocks, ms, and what fat-tree routing saves")
    rows = []
    for name, distances in (("SAGE, shift of 24", (24, -24)), ("Partisn, 32 x 32", (1, -1, 32, -32))):
        times = {way: time_of(args, where, (shift(1024, *distances), 1 << 16), name.split(",", maxsplit=1)[0])
                 for way, where in ways_of(args, 256).items()}
        least = times["fat-tree"]
        rows += [[name, way, "%.4f" % time, "%.4f" % (1 - least / time)] for way, time in times.items()]
        print("%-18s" % name + "".join("  %s %.3f (%.0f%%)" % (way, time, 100 * (1 - least / time))
                                       for way, time in times.items()), flush=True)
    args.write("table3", ["application", "way", "ms", "saved"], rows)
