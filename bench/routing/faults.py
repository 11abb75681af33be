"""Random damage: ours and OpenSM's ftree on the same fabrics."""
import csv
import os
import random
import statistics

import cases
import opensm


def damaged(fabric, levels, damage, seed):
    """The fabric without what the seed takes."""
    count, what = damage.split()
    if what.startswith("link"):
        return "%s/cut=%s:%d" % (fabric, count, seed)
    names = ["s%d-%05d" % (level, i) for level, size in levels.items() for i in range(size)]
    return "%s/drop=%s" % (fabric, ",".join(sorted(random.Random(seed).sample(names, int(count)))))


def one(engine, fabric):
    """Our figures and OpenSM's: rows of strings. Where no way up, then down is left, ours is updn's, which needs none
    of a tree."""
    code, proof, message = opensm.ours(engine, fabric)
    if code == 3:
        engine = "updn"
        code, proof, message = opensm.ours(engine, fabric)
    row = {"by": engine, "ours": "", "worst": "", "opensm": "", "opensm worst": "", "routed": "", "said": message}
    if code == 0:
        row.update({"ours": proof["average"], "worst": proof["worst"]})
    with opensm.Subnet(fabric) as subnet:
        run = subnet.route("ftree")
        found = subnet.contention(run) if run["routed"] else None
        row["routed"] = run["routed"]
        if found:
            row.update({"opensm": found[0], "opensm worst": found[1]})
    return row


def run(out, first, seeds):
    """Writes a row a fabric, damage and seed as they come, seed by seed: a stop loses nothing, a later first seed
    goes on where it was."""
    path = os.path.join(out, "faults.csv")
    names = ["engine", "fabric", "damage", "seed", "by", "ours", "worst", "opensm", "opensm worst", "routed", "said"]
    with open(path, "w" if first == 1 else "a", newline="", encoding="ascii") as text:
        table = csv.DictWriter(text, names)
        if first == 1:
            table.writeheader()
        for seed in range(first, seeds + 1):
            for engine, fabric, levels in cases.FAULTS:
                for damage in cases.DAMAGE:
                    row = one(engine, damaged(fabric, levels, damage, seed))
                    table.writerow(dict(row, engine=engine, fabric=fabric, damage=damage, seed=seed))
                    text.flush()
    return path


def table(path):
    """Lines of text: medians over the seeds that both routed."""
    with open(path, newline="", encoding="ascii") as text:
        rows = list(csv.DictReader(text))
    lines = ["seeds; by updn: no way up, then down was left; apart: the graph is in pieces; lost: OpenSM's tables lose hosts "
             "that ours reach;", "medians of average and worst over the rest; <=: seeds in which ours is at or below", "",
             "%-26s %-11s %6s %7s %6s %6s %8s %8s %6s %6s %6s" % (
                 "fabric", "damage", "seeds", "by updn", "apart", "lost", "ours", "ftree", "worst", "ftree", "<=")]
    for _, fabric, _ in cases.FAULTS:
        for damage in cases.DAMAGE:
            part = [r for r in rows if (r["fabric"], r["damage"]) == (fabric, damage)]
            both = [r for r in part if r["ours"] and r["opensm"]]
            if not both:
                continue
            lines.append("%-26s %-11s %6d %7d %6d %6d %8.3f %8.3f %6.0f %6.0f %5.0f%%" % (
                fabric, damage, len(part), sum(r["by"] == "updn" and bool(r["ours"]) for r in part),
                sum(not r["ours"] for r in part),
                sum(bool(r["ours"]) and not r["opensm"] for r in part),
                statistics.median(float(r["ours"]) for r in both), statistics.median(float(r["opensm"]) for r in both),
                statistics.median(int(r["worst"]) for r in both),
                statistics.median(int(r["opensm worst"]) for r in both),
                100.0 * sum(float(r["ours"]) <= float(r["opensm"]) + 1e-5 for r in both) / len(both)))
    return lines
