"""Viertel 2007, chapter 4: the parameters by PRTT beside those of `ibshift tune`, from the same rows of messages.

PRTT(n, 0, s) is the time of n messages of s bytes and their answer, which is what tune's rows are. The thesis takes
    g(s) = (PRTT(n, 0, s) - PRTT(1, 0, s)) / (n - 1)
as the time of a further message, g and G from the line g + (s - 1) G through it, and L from PRTT(1, 0, 1).
"""
import math
import os
import re
import subprocess

import routes
from plot import plot

SCALE = 1000  # of the wire hdr: what processors do is nothing beside it
BIN = os.path.dirname(routes.IBSHIFT)


def measure(path):
    """tune's file of two ranks on two modelled hosts."""
    known = dict(os.environ, OMPI_MCA_coll_ibshift_node="0", OMPI_MCA_rmaps_base_oversubscribe="1",
                 OMPI_MCA_mpi_yield_when_idle="1")
    program = [os.path.join(BIN, name) for name in ("softhca-run", "ibshift-run", "ibshift")]
    subprocess.run([program[0], "--quiet", "--wire", "hdr", "--scale", str(SCALE), "--hosts", "2", "--", program[1], "-np", "2",
                    program[2], "tune", "--quiet", "--force", "--output", path], env=known, check=True)


def rows_of(path):
    """{(kind, messages, bytes): (measured, by tune's parameters)}, in us; of messages over the adapter."""
    with open(path, encoding="utf-8") as text:
        found = re.findall(r"^#   (\w+) +(\d+) x +(\d+) B +(\S+) +(\S+)", text.read().split("[node]")[0], re.M)
    return {(kind, int(n), int(size)): (float(us), float(by_tune)) for kind, n, size, us, by_tune in found}


def line_through(points):
    """Least squares of y = a + b x."""
    x, y = ([p[i] for p in points] for i in (0, 1))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)
    return mean_y - slope * mean_x, slope


def prtt(args):
    """The table, and a figure of priced over measured times."""
    path = os.path.join(args.output, "prtt.costs")
    if not os.path.exists(path):
        measure(path)
    rows = rows_of(path)
    stream = {(n, size): us for (kind, n, size), (us, _) in rows.items() if kind == "stream"}
    longest = {size: max(n for n, other in stream if other == size) for _, size in stream}
    further = {size: (stream[n, size] - stream[1, size]) / (n - 1) for size, n in longest.items() if n > 1}
    g, G = line_through([(size - 1, us) for size, us in sorted(further.items())])
    way = stream[1, 1] / 2  # L, o_s and o_r
    table, series = [], {"tune, one message": [], "tune, a row": [], "PRTT, one message": [], "PRTT, a row": []}
    print("\nViertel 2007, PRTT beside ibshift tune on the wire hdr, stretched %d times; PRTT: g %.2f us, G %.5f us/B, L with both o %.1f us"
          % (SCALE, g, G, way))
    print("%9s %7s %12s %8s %8s" % ("messages", "bytes", "measured us", "tune", "PRTT"))
    for (n, size), us in sorted(stream.items(), key=lambda item: (item[0][1], item[0][0])):
        by_tune = rows["stream", n, size][1]
        by_prtt = 2 * way + (size - 1) * G + (n - 1) * (g + (size - 1) * G)
        table.append([n, size, us, "%.4f" % (by_tune / us), "%.4f" % (by_prtt / us)])
        print("%9d %7d %12.1f %8.3f %8.3f" % (n, size, us, by_tune / us, by_prtt / us))
        if n in (1, longest[size]):
            what = "one message" if n == 1 else "a row"
            series["tune, " + what].append((math.log2(size), by_tune / us))
            series["PRTT, " + what].append((math.log2(size), by_prtt / us))
    args.write("prtt", ["messages", "bytes", "measured us", "tune over measured", "PRTT over measured"], table)
    plot(os.path.join(args.output, "prtt.svg"), "Times by PRTT and by ibshift tune", "Viertel 2007, Fig. 4.4 and 4.5, on the modelled wire",
         "bytes of a message, logarithm of base 2", "by the parameters over measured", list(series.items()),
         source="Measured on the software HCA's modelled wire in slow motion: no hardware.")
