"""What the boots measured: CSV files in, a page of tables and a picture out."""
import csv
import os
import sys
from collections import defaultdict
from statistics import median

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compare"))
import plots  # noqa: E402
from report import OURS, best_peer, geometric_mean, human_size, ratio  # noqa: E402

COLUMNS = ("t_mpi", "t_mpi_p10", "t_mpi_p90", "counted")
ENGINES = {"uml": "User-Mode Linux, this machine's time", "tcg": "QEMU, counted time: one instruction is 1 ns"}


def read_boot(folder):
    """({(collective, ranks, size): {contender: {column: median over the rounds}}}, {(operation, size): us})"""
    samples = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    floor = {}
    if os.path.exists(os.path.join(folder, "rows.csv")):
        with open(os.path.join(folder, "rows.csv"), encoding="ascii") as file:
            for row in csv.DictReader(file):
                key = row["collective"], int(row["ranks"]), int(row["size"])
                for column in COLUMNS:
                    samples[key][row["label"]][column].append(float(row[column]))
    if os.path.exists(os.path.join(folder, "floor.csv")):
        with open(os.path.join(folder, "floor.csv"), encoding="ascii") as file:
            floor = {(operation, int(size)): float(us) for operation, size, us in csv.reader(file)}
    return {key: {name: {c: median(v) for c, v in columns.items()} for name, columns in cell.items()}
            for key, cell in samples.items()}, floor


def merge(boots):
    """The same table over all boots: medians, and the list of each boot's times as column 't_boots'."""
    table = defaultdict(dict)
    for key in {key for boot in boots for key in boot}:
        for name in plots.COLOURS:
            cells = [boot[key][name] for boot in boots if name in boot.get(key, {})]
            if cells:
                table[key][name] = {c: median(cell[c] for cell in cells) for c in COLUMNS}
                table[key][name]["t_boots"] = [cell["t_mpi"] for cell in cells]
    return dict(table)


def spread(times):
    """How far the boots are from their median, in percent."""
    return max(abs(t / median(times) - 1) for t in times) * 100


def cell_text(values, engine):
    """The time of one contender: with its tenth and ninetieth percentile, or with the boots' spread."""
    if engine == "uml":
        return f"{values['t_mpi']:.0f} ({values['t_mpi_p10']:.0f}..{values['t_mpi_p90']:.0f})"
    return f"{values['t_mpi']:.1f} (+-{spread(values['t_boots']):.1f} %)"


def write_cells(table, engine, out):
    """One line a cell."""
    names = [n for n in plots.COLOURS if any(n in cell for cell in table.values())]
    out.write("| collective | ranks | block | " + " | ".join(names) + " | better peer / ibshift | packets: "
              + " | ".join(names) + " |\n" + "|---" * (4 + 2 * len(names)) + "|\n")
    for (collective, ranks, size), cell in sorted(table.items()):
        times = [cell_text(cell[n], engine) if n in cell else "-" for n in names]
        packets = [f"{cell[n]['counted']:.1f}" if n in cell else "-" for n in names]
        r = ratio(cell)
        out.write(f"| {collective[4:].lower()} | {ranks} | {human_size(size) if size else '-'} | " + " | ".join(times)
                  + f" | {r:.2f} | " if r else " | - | ")
        out.write(" | ".join(packets) + " |\n")


def write_summary(table, out):
    """The aims: geometric mean up to 4 KiB, worst cell, packets."""
    for title, is_in in (("up to 4 KiB", lambda s: s <= 4096), ("above 4 KiB", lambda s: s > 4096)):
        ratios = {k: ratio(c) for k, c in table.items() if is_in(k[2]) and ratio(c)}
        if ratios:
            worst = min(ratios, key=ratios.get)
            out.write(f"- Blocks {title}: ibshift is {geometric_mean(ratios.values()):.2f} times as fast as the better "
                      f"peer (geometric mean of {len(ratios)} cells); {sum(r < 0.95 for r in ratios.values())} cells are "
                      f"under 0.95, the worst is {ratios[worst]:.2f}: {worst[0][4:].lower()}, {worst[1]} ranks, "
                      f"{human_size(worst[2])}.\n")
    cells = [c for c in table.values() if OURS in c and best_peer(c, "counted")]
    more = [c for c in cells if c[OURS]["counted"] > 1.01 * c[best_peer(c, "counted")]["counted"]]
    out.write(f"- Packets: ibshift sends more than the thriftier peer in {len(more)} of {len(cells)} cells.\n")


def write_repeats(table, out):
    """How well the boots agree."""
    spreads = [spread(v["t_boots"]) for cell in table.values() for v in cell.values() if len(v["t_boots"]) > 1]
    if spreads:
        count = max(len(v["t_boots"]) for cell in table.values() for v in cell.values())
        out.write(f"- Medians of {count} boots are within 3 % of theirs in {100 * sum(s <= 3 for s in spreads) / len(spreads):.0f} % "
                  f"of {len(spreads)} cells; the worst is {max(spreads):.1f} % off.\n")


def write_floor(floors, out):
    """Half the round trip of plain verbs."""
    sizes = sorted({size for floor in floors for _, size in floor})
    out.write("\n| one way, plain verbs | " + " | ".join(human_size(s) for s in sizes) + " |\n" + "|---" * (len(sizes) + 1) + "|\n")
    for operation in ("write", "send"):
        times = [median(f[operation, s] for f in floors if (operation, s) in f) for s in sizes]
        out.write(f"| RDMA {operation} | " + " | ".join(f"{t:.1f}" for t in times) + " |\n")


def write(engine, boots, folder):
    """FOLDER/ENGINE.md and .svg, and the page on standard output."""
    table = merge([table for table, _ in boots])
    path = os.path.join(folder, engine + ".md")
    with open(path, "w", encoding="ascii") as out:
        out.write(f"Soft-RoCE, {ENGINES[engine]}; us, median of {len(boots)} boot(s); in brackets "
                  + ("tenth to ninetieth percentile" if engine == "uml" else "how far a boot is from the median") + ".\n\n")
        write_cells(table, engine, out)
        out.write("\n")
        write_summary(table, out)
        write_repeats(table, out)
        write_floor([floor for _, floor in boots if floor], out)
    with open(os.path.join(folder, engine + ".svg"), "w", encoding="ascii") as out:
        out.write(plots.heat_map(table, "Soft-RoCE, " + ENGINES[engine]))
    with open(path, encoding="ascii") as file:
        sys.stdout.write(file.read())
    print(f"\nwritten: {path}, {folder}/{engine}.svg")
