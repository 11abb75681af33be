"""What the boots measured: CSV files in, a page of tables and a picture out."""
import csv
import os
import sys
import textwrap
from collections import defaultdict
from statistics import median

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compare"))
import plots  # noqa: E402
from report import geometric_mean, human_size, ratio  # noqa: E402

COLUMNS = ("t_mpi", "t_mpi_p10", "t_mpi_p90", "counted")
WIDTH = 120  # columns of a line of prose
BRACKETS = {"uml": "the tenth and the ninetieth percentile", "tcg": "the largest distance of a boot from the median"}
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


def read_ends(folders):
    """[(contender, ranks, exit code, cells that it had measured)]: of all runs that ended badly."""
    ends = []
    for folder in folders:
        if os.path.exists(os.path.join(folder, "ends.csv")):
            with open(os.path.join(folder, "ends.csv"), encoding="ascii") as file:
                ends += [tuple(row) for row in csv.reader(file)]
    return ends


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


def say(out, text, begin="- "):
    """An item of a list, or a paragraph, in lines of at most WIDTH."""
    out.write(textwrap.fill(text, WIDTH, initial_indent=begin, subsequent_indent=" " * len(begin),
                            break_long_words=False, break_on_hyphens=False) + "\n")


def write_cells(table, engine, out):
    """One line per cell."""
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


def write_times(title, ratios, out):
    """The aim over some cells."""
    if not ratios:
        return
    worst = min(ratios, key=ratios.get)
    say(out, f"{title}: ibshift is {geometric_mean(ratios.values()):.2f} times as fast as the better peer "
        f"(geometric mean of {len(ratios)} cells); {sum(r < 0.95 for r in ratios.values())} cells are below 0.95, "
        f"the worst is {ratios[worst]:.2f}: {worst[0][4:].lower()}, {worst[1]} ranks, {human_size(worst[2])}.")


def write_summary(table, out):
    """The aims: geometric mean up to 4 KiB, worst cell, packets."""
    ratios = {k: ratio(c) for k, c in table.items() if ratio(c)}
    for title, is_in in (("up to 4 KiB", lambda s: s <= 4096), ("above 4 KiB", lambda s: s > 4096)):
        chosen = {k: r for k, r in ratios.items() if is_in(k[2])}
        write_times(f"Blocks {title}", chosen, out)
        for ranks in sorted({k[1] for k in chosen}):
            write_times(f"{ranks} ranks, {title}", {k: r for k, r in chosen.items() if k[1] == ranks}, out)
    shares = {k: ratio(c, "counted") for k, c in table.items() if (ratio(c, "counted") or 0) > 0}
    more = sorted(f"{k[0][4:].lower()} {human_size(k[2]) if k[2] else ''}".strip() + f", {k[1]} ranks ({1 / r:.2f})"
                  for k, r in shares.items() if r < 1 / 1.01)
    if shares:
        say(out, f"Packets: the peer that sends fewer sends {geometric_mean(shares.values()):.2f} times as many as ibshift "
            f"(geometric mean). ibshift sends more in {len(more)} of {len(shares)} cells{': ' if more else ''}{'; '.join(more)}.")


def write_repeats(table, out):
    """How well the boots agree."""
    spreads = [spread(v["t_boots"]) for cell in table.values() for v in cell.values() if len(v["t_boots"]) > 1]
    if spreads:
        count = max(len(v["t_boots"]) for cell in table.values() for v in cell.values())
        say(out, f"Boots repeat: in {100 * sum(s <= 3 for s in spreads) / len(spreads):.0f} % of {len(spreads)} cells all {count} boots "
            f"are within 3 % of their median; the worst is {max(spreads):.1f} % off.")


def write_ends(ends, out):
    """Who ended badly; the cells measured before that are in the table."""
    for end in sorted(set(ends)):
        name, ranks, code, cells = end
        say(out, f"{name} with {ranks} ranks failed in {ends.count(end)} run(s): exit code {code}, after {cells} cells.")


def write_floor(floors, out):
    """Half the round trip of plain verbs."""
    sizes = sorted({size for floor in floors for _, size in floor})
    out.write("\n| one way, plain verbs | " + " | ".join(human_size(s) for s in sizes) + " |\n" + "|---" * (len(sizes) + 1) + "|\n")
    for operation in ("write", "send"):
        times = [median(f[operation, s] for f in floors if (operation, s) in f) for s in sizes]
        out.write(f"| RDMA {operation} | " + " | ".join(f"{t:.1f}" for t in times) + " |\n")


def write(engine, boots, ends, folder, name):
    """FOLDER/NAME.md, FOLDER/NAME-ratio.svg, and the page on standard output."""
    table = merge([table for table, _ in boots])
    floors = [floor for _, floor in boots if floor]
    title = "Soft-RoCE, " + ENGINES[engine]
    path = os.path.join(folder, name + ".md")
    with open(path, "w", encoding="ascii") as out:
        out.write(f"# {title}\n\n")
        say(out, "For readers of [soft-roce.md](../soft-roce.md), which says what this page measures: every cell of it. "
            f"Written by `bench/vm/run --engine {engine}`. Times are in microseconds, medians of {len(boots)} boot(s), in brackets "
            f"{BRACKETS[engine]}. Packets are those of one operation on the wire, with acknowledgements.", "")
        out.write("\n")
        write_summary(table, out)
        write_repeats(table, out)
        write_ends(ends, out)
        out.write("\n")
        write_cells(table, engine, out)
        write_floor(floors, out)
    with open(os.path.join(folder, f"{name}-ratio.svg"), "w", encoding="ascii") as out:
        out.write(plots.heat_map(table, title))
    with open(path, encoding="ascii") as file:
        sys.stdout.write(file.read())
    print(f"\nwritten: {path}, {folder}/{name}-ratio.svg")
