"""What was measured, as text, CSV and ratios."""
import csv
from math import exp, log

OURS = "ibshift"


def best_peer(cell, column="t_mpi"):
    """The faster of the peers in this cell, or None."""
    peers = {name: values[column] for name, values in cell.items() if name != OURS}
    return min(peers, key=peers.get) if peers else None


def ratio(cell, column="t_mpi"):
    """How many times faster ibshift is than the better peer; None where one of them is missing."""
    peer = best_peer(cell, column)
    if peer is None or OURS not in cell or cell[OURS][column] <= 0:
        return None
    return cell[peer][column] / cell[OURS][column]


def geometric_mean(values):
    """Of the values that are there."""
    values = [v for v in values if v]
    return exp(sum(log(v) for v in values) / len(values)) if values else None


def human_size(size):
    """8, 1K, 64K, 1M."""
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def print_table(table, names, plans, out):
    """One line a cell: times in us, the ratio, and ibshift's plan with what the model says of it."""
    width = max(len(n) for n in names) + 2
    out.write(f"{'collective':25} {'ranks':>5} {'block':>6}" + "".join(f"{n:>{max(width, 13)}}" for n in names)
              + f"{'better peer / ibshift':>24}  {'modelled':>9}  plan\n")
    for (collective, ranks, size), cell in sorted(table.items()):
        line = f"{collective:25} {ranks:5} {human_size(size):>6}"
        for name in names:
            line += f"{cell[name]['t_mpi']:{max(width, 13)}.1f}" if name in cell else f"{'-':>{max(width, 13)}}"
        r = ratio(cell)
        plan, price = plans.get((collective, ranks, size), ("", None))
        line += (f"{r:24.2f}" if r else f"{'-':>24}") + (f"  {price:9.1f}  {plan}" if price is not None else "")
        out.write(line + "\n")


def print_summary(table, out):
    """Geometric means and the worst cell, up to 4 KiB and above."""
    for title, small in (("blocks up to 4 KiB", True), ("blocks above 4 KiB", False)):
        cells = {key: ratio(cell) for key, cell in table.items() if (key[2] <= 4096) == small}
        cells = {key: r for key, r in cells.items() if r}
        if not cells:
            continue
        worst = min(cells, key=cells.get)
        out.write(f"{title}: ibshift is {geometric_mean(cells.values()):.2f} times as fast as the better peer "
                  f"(geometric mean of {len(cells)} cells); worst cell {cells[worst]:.2f}: {worst[0]}, "
                  f"{worst[1]} ranks, {human_size(worst[2])}\n")


def print_model(table, plans, out):
    """Measured times beside the price of the plan that ran."""
    cells = {key: cell[OURS]["t_mpi"] / plans[key][1] for key, cell in table.items()
             if OURS in cell and key in plans and plans[key][1] > 0}
    if not cells:
        return
    worst = max(cells, key=cells.get)
    near = sum(r <= 1.15 for r in cells.values())
    out.write(f"measured / modelled: {geometric_mean(cells.values()):.2f} (geometric mean of {len(cells)} cells), {near} "
              f"within 1.15; worst {cells[worst]:.2f}: {worst[0]}, {worst[1]} ranks, {human_size(worst[2])}\n")


def write_csv(table, path):
    """All columns of all contenders."""
    with open(path, "w", encoding="ascii", newline="") as file:
        writer = csv.writer(file)
        header = None
        for (collective, ranks, size), cell in sorted(table.items()):
            for name, columns in cell.items():
                if header is None:
                    header = list(columns)
                    writer.writerow(["collective", "ranks", "size", "contender"] + header)
                writer.writerow([collective, ranks, size, name] + [f"{columns[c]:.3f}" for c in header])
