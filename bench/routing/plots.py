"""SVG pictures: contention of the engines side by side, and under damage."""
import csv
import os
import statistics
import sys

import cases

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from svg import bar, page, text  # noqa: E402

COLOURS = {"ibshift": "#0072b2", "OpenSM": "#e69f00"}


def write(path, *picture):
    with open(path, "w", encoding="ascii") as out:
        out.write(page(*picture))


def legend(x, y, other="OpenSM"):
    body = []
    for i, (name, colour) in enumerate(zip(("ibshift", other), COLOURS.values())):
        body += [bar(x + 110 * i, y - 10, 12, 12, colour), text(x + 110 * i + 18, y, name)]
    return body


def side(path, rows):
    """A group of bars a fabric, one an engine: the average of the busiest link's flows."""
    most = max((row[3] for row in rows if row[3] is not None), default=1)
    body, y, shown = legend(20, 76), 100, None
    for name, engine, who, average, worst, note in rows:
        if name != shown:
            y += 26
            body.append(text(20, y - 6, name, 13, extra='font-weight="bold"'))
            shown = name
        body.append(text(170, y + 11, engine, 11, "end"))
        if average is None:
            body.append(text(180, y + 11, note or "-", 11, extra='fill="#888"'))
        else:
            width = max(2.0, 420.0 * average / most)
            body += [bar(180, y, width, 14, COLOURS[who]),
                     text(186 + width, y + 11, "%.2f (%s) %s" % (average, worst, note), 11)]
        y += 17
    write(path, 860, y + 30, "Flows on the busiest link of a shift", "average over all stages (worst); 1 is free of "
         "contention; exact counts on the tables", body)


def faults(path, table):
    """Medians over seeds, ours beside OpenSM's ftree, a panel a fabric."""
    with open(table, newline="", encoding="ascii") as file:
        rows = [r for r in csv.DictReader(file) if r["ours"] and r["opensm"]]
    most = max((float(r["opensm"]) for r in rows), default=1)
    body, top = legend(20, 76, "OpenSM's ftree"), 110
    for index, (engine, fabric, _) in enumerate(cases.FAULTS):
        y0 = top + index * 170
        body.append(text(20, y0, "%s (ibshift: %s)" % (fabric, engine), 13, extra='font-weight="bold"'))
        for i, damage in enumerate(cases.DAMAGE):
            part = [r for r in rows if (r["fabric"], r["damage"]) == (fabric, damage)]
            x = 40 + i * 120
            body.append(text(x + 36, y0 + 145, damage, 11, "middle"))
            for k, column in enumerate(("ours", "opensm")):
                if part:
                    value = statistics.median(float(r[column]) for r in part)
                    height = 100.0 * value / most
                    body += [bar(x + 38 * k, y0 + 130 - height, 34, height, list(COLOURS.values())[k]),
                             text(x + 38 * k + 17, y0 + 125 - height, "%.2f" % value, 10, "middle")]
    write(path, 780, top + 170 * len(cases.FAULTS) + 10, "Contention of a shift on damaged fabrics",
         "flows on a stage's busiest link: mean over all stages, median of %d seeds; exact counts; 1: no contention" % len({r["seed"] for r in rows}), body)
