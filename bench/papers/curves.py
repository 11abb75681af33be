"""Zahavi et al. 2014, Fig. 3, 8 and 9: latency over throughput on 4,536 hosts."""
import os

import routes
from plot import plot

QFT = "qft:3;18,9,28;1,9,18;1,2,1"
PGFT = "pgft:3;18,9,28;1,9,18;1,2,1"
SMALL = {QFT: "qft:3;6,3,8;1,3,6;1,2,1", PGFT: "pgft:3;6,3,8;1,3,6;1,2,1"}
# The links' bandwidth as printed. Length of messages, steady hosts: an example that comes with the paper's simulator.
COMMON = ["--rate", "45600", "--packets", "64", "--steady", "--warm", "200", "--span", "300"]
# The most telling loads first: a series that is stopped has the saturation of all curves.
LOADS = "1,0.5,0.8,0.6,0.4,0.2"
QUICK = "1,0.6,0.3"


def draw(args, name, title, ways, traffic, printed=None, least=False):
    """ways: {label: (fabric, more words)}; printed: {label: saturation}. A line a cell as it comes; then CSV and
    plot."""
    points = {way: [] for way in ways}
    print("\n%s\n%-26s %5s %12s %12s %12s %12s" % (title, "", "load", "host's MB/s", "least MB/s", "latency us",
                                                  "longest us"))
    for load in (QUICK if args.quick else args.loads).split(","):
        for way, (fabric, more) in ways.items():
            result = args.cells.simulate(fabric, COMMON + ["--load", load] + traffic + more)
            point = result["points"][0]
            points[way].append(point)
            print("%-26s %5s %12.0f %12.0f %12.2f %12.2f" % (way, load, *(point[key] for key in (
                "throughput", "least", "latency", "longest"))), flush=True)
    rows, series = [], []
    for way in ways:
        points[way].sort(key=lambda point: point["load"])
        rows += [[way] + [p[key] for key in ("load", "throughput", "least", "latency", "longest")] for p in points[way]]
        label = way + (", mean" if least else "")
        series.append((label, [(p["throughput"], p["latency"]) for p in points[way]]))
        if least:
            series.append((way + ", least throughput and longest latency",
                           [(p["least"], p["longest"]) for p in points[way]]))
        print("%-26s at most %.0f MB/s per host" % (way, max(p["throughput"] for p in points[way])))
    args.write(name, ["way", "load", "throughput", "least", "latency", "longest"], rows)
    marks = [(list(ways).index(way), most, "%s, saturation as printed: %s MB/s" % (way, "{:,}".format(most)))
             for way, most in ({} if args.quick else printed or {}).items()]
    paper, what = title.split(": ")
    plot(os.path.join(args.output, name + ".svg"), what[0].upper() + what[1:],
         "%s; %s hosts, 128 KB messages" % (paper, "144" if args.quick else "4,536"), "throughput, MB/s per host",
         "latency of a message's last packet, us", series, log=True, marks=marks)


def size(args, fabric):
    """The fabric, or with --quick one of the same kind with 144 hosts."""
    return SMALL[fabric] if args.quick else fabric


def fig3(args):
    """Twelve jobs of 300 hosts in fragments, PGFT against QFT."""
    hosts = "10" if args.quick else "300"
    draw(args, "fig3", "Zahavi et al. 2014, Fig. 3: 12 jobs in fragments",
         {"PGFT": (size(args, PGFT), []), "QFT": (size(args, QFT), [])},
         ["--traffic", "shift", "--jobs", "12", "--job-hosts", hosts, "--fragments", "4:1" if args.quick else "36:10"],
         least=True)


def engines(args):
    """The routings of Fig. 8 and 9; OpenSM's spreads by chance where the paper's does."""
    fabric = size(args, QFT)
    return {"updn + scatter": (routes.by_opensm(args.tables, fabric, "updn", "--scatter-ports", "1"), []),
            "ftree": (routes.by_opensm(args.tables, fabric, "ftree"), []),
            "qft": (routes.by_ibshift(args.tables, fabric, "qft"), [])}


def fig8(args):
    """One job over the whole QFT, random shifts."""
    ways = engines(args)
    ways["ftree, hosts by number"] = (ways["ftree"][0], ["--order", "rank"])
    draw(args, "fig8", "Zahavi et al. 2014, Fig. 8: one job, random shifts", ways, ["--traffic", "shift"],
         {"updn + scatter": 2620, "ftree": 4400, "qft": 5700})


def fig9(args):
    """Random destinations."""
    draw(args, "fig9", "Zahavi et al. 2014, Fig. 9: random destinations", engines(args), ["--traffic", "random"],
         {"updn + scatter": 2480, "ftree": 2740, "qft": 2740})
