"""SVG pictures of a measured table: a heat map of ratios, time over size, time over ranks."""
import os
import sys
from math import log2, log10

from report import OURS, human_size, ratio

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from svg import page, text  # noqa: E402

COLOURS = {OURS: "#0072b2", "tuned/openib": "#e69f00", "tuned/UCX": "#009e73", "han/UCX": "#cc79a7", "tuned/TCP": "#d55e00",
           "han/TCP": "#56b4e9"}


def shade(r):
    """Blue where ibshift is faster, orange where it is slower, white at 1; full at a factor of 4."""
    strength = max(-1.0, min(1.0, log2(r) / 2))
    base = (0, 114, 178) if strength > 0 else (213, 94, 0)
    mix = [round(255 + (c - 255) * abs(strength) * 0.8) for c in base]
    return "#%02x%02x%02x" % tuple(mix)


def heat_map(table, subtitle):
    """Ratio of the better peer to ibshift: a panel for each number of ranks, collective x block size; two side by side."""
    ranks = sorted({k[1] for k in table})
    sizes = sorted({k[2] for k in table})
    names = sorted({k[0] for k in table})
    cell_w, cell_h, margin, top = 52, 24, 180, 90
    high, wide, across = len(names) * cell_h + 60, margin + len(sizes) * cell_w + 20, min(2, len(ranks))
    body = []
    for i, p in enumerate(ranks):
        y0, left = top + i // across * high, margin + i % across * wide
        body.append(text(left - margin + 20, y0 - 8, f"{p} ranks", 14, extra='font-weight="bold"'))
        for j, size in enumerate(sizes):
            body.append(text(left + (j + 0.5) * cell_w, y0 - 8, human_size(size) if size else "-", 11, "middle"))
        for row, name in enumerate(names):
            y = y0 + row * cell_h
            body.append(text(left - 8, y + 16, name.replace("MPI_", ""), 12, "end"))
            for j, size in enumerate(sizes):
                r = ratio(table.get((name, p, size), {}))
                if r is None:
                    continue
                x = left + j * cell_w
                body.append(f'<rect x="{x}" y="{y}" width="{cell_w - 2}" height="{cell_h - 2}" fill="{shade(r)}"/>')
                body.append(text(x + cell_w / 2 - 1, y + 15, f"{r:.2f}", 11, "middle"))
    return page(max(across * wide + 20, 760), top + -(-len(ranks) // across) * high - 30,
                "How many times faster than the better of Open MPI's own",
                subtitle + "; columns: bytes of a block; above 1 (blue) ibshift is faster", body)


def ticks(low, high):
    """Powers of ten that cover [low, high]."""
    first, last = int(log10(low) // 1), int(-(-log10(high) // 1))
    return [10.0 ** e for e in range(first, max(last, first + 1) + 1)]


def panel(x0, y0, width, height, title, series, x_names):
    """One log-scaled plot: series = {contender: [(x index, value)]}."""
    values = [v for points in series.values() for _, v in points if v > 0]
    marks = ticks(min(values), max(values))
    low, high = log10(marks[0]), log10(marks[-1])

    def place(i, v):
        x = x0 + (width * i / max(1, len(x_names) - 1))
        return x, y0 + height - height * (log10(v) - low) / (high - low)

    body = [text(x0 + width / 2, y0 - 8, title, 12, "middle", 'font-weight="bold"')]
    for mark in marks:
        _, y = place(0, mark)
        body.append(f'<line x1="{x0}" y1="{y:.1f}" x2="{x0 + width}" y2="{y:.1f}" stroke="#ddd"/>')
        body.append(text(x0 - 5, y + 4, f"{mark:g}", 10, "end"))
    stride = -(-len(x_names) // 6)  # labels must not touch
    for i, name in list(enumerate(x_names))[::stride]:
        body.append(text(place(i, marks[0])[0], y0 + height + 14, name, 10, "middle"))
    for name, points in series.items():
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(i, v) for i, v in points if v > 0))
        body.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{COLOURS[name]}"/>'
                 for x, y in (place(i, v) for i, v in points if v > 0)]
    return body


def small_multiples(table, subtitle, title, x_of, panel_of, panel_name, x_name):
    """A grid of panels; x_of and panel_of pick what varies from a key (collective, ranks, size)."""
    panels = sorted({panel_of(k) for k in table})
    columns, width, height = min(4, len(panels)), 210, 150
    body, x_step, y_step = [], width + 70, height + 70
    for i, name in enumerate(n for n in COLOURS if any(n in cell for cell in table.values())):
        body.append(f'<rect x="{20 + 150 * i}" y="62" width="12" height="12" fill="{COLOURS[name]}"/>')
        body.append(text(38 + 150 * i, 73, name, 12))
    for index, which in enumerate(panels):
        cells = {k: c for k, c in table.items() if panel_of(k) == which}
        xs = sorted({x_of(k) for k in cells})
        series = {n: [(xs.index(x_of(k)), c[n]["t_mpi"]) for k, c in sorted(cells.items()) if n in c] for n in COLOURS}
        body += panel(70 + index % columns * x_step, 120 + index // columns * y_step, width, height, panel_name(which),
                      {n: s for n, s in series.items() if s}, [x_name(x) for x in xs])
    rows = -(-len(panels) // columns)
    return page(40 + columns * x_step, 110 + rows * y_step, title, subtitle + "; us, logarithmic", body)


def time_over_size(table, subtitle):
    """A panel for each collective at the largest number of ranks."""
    most = max(k[1] for k in table)
    sized = {k: c for k, c in table.items() if k[1] == most and k[2] > 0}
    return small_multiples(sized, subtitle, f"Time over block size, {most} ranks", lambda k: k[2], lambda k: k[0],
                           lambda name: name, human_size)


def time_over_ranks(table, subtitle):
    """A panel for each collective at the smallest block."""
    least = min((k[2] for k in table if k[2] > 0), default=0)
    small = {k: c for k, c in table.items() if k[2] in (0, least)}
    return small_multiples(small, subtitle, f"Time over ranks, blocks of {human_size(least)} bytes", lambda k: k[1],
                           lambda k: k[0], lambda name: name, str)
