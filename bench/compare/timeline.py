"""The use of links over time in the last all-to-all of a run, as softhca-run --wire-timeline wrote it."""
import plots

LEFT, TOP, WIDTH, HEIGHT = 150, 80, 720, 560
COLUMNS = 360
STEPS = ((0.9, "#0072b2", "90 % and more"), (0.6, "#56b4e9", "60 to 90 %"), (0.3, "#b8ddf4", "30 to 60 %"),
         (0.02, "#e4e4e4", "2 to 30 %"), (0.0, "#ffffff", "idle"))
GROUPS = ("host to leaf", "leaf to spine", "spine to leaf", "leaf to host")


class Timeline:
    """Bytes of links by slice, cut to the last all-to-all."""

    def __init__(self, path, total, hosts):
        self.groups = {group: [] for group in GROUPS}
        self.slice_us, self.scale = 0, 1
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("#"):
                    self._read_head(line)
                    continue
                name, rate, *cells = line.rstrip("\n").split("\t")
                full = float(rate) * 1000 * self.slice_us
                self.groups[group_of(name, hosts)].append((name, full, [float(cell) for cell in cells]))
        self._cut(total)

    def _read_head(self, line):
        words = line.replace(",", "").split()
        if "slices" in words:
            self.scale = int(words[words.index("scale") + 1].rstrip(":"))
            self.slice_us = int(words[words.index("us") - 1])

    def _cut(self, total):
        """Slices from the end back to those that complete `total` bytes; a thousandth at each end is other talk."""
        sums = [sum(column) for column in zip(*(cells for _, _, cells in self.groups[GROUPS[0]]))]
        first, last, seen = 0, len(sums), 0
        for index in range(len(sums) - 1, -1, -1):
            seen += sums[index]
            if seen <= total * 0.001:
                last = index
            if seen >= total * 0.999:
                first = index
                break
        for rows in self.groups.values():
            rows[:] = [(name, full, cells[first:last]) for name, full, cells in rows]
        self.slices = last - first

    def ms(self):
        """On the wall clock, by slices."""
        return self.slices * self.slice_us * self.scale / 1000

    def mean_use(self, group):
        """Of a group's links, from the first byte to the last."""
        rows = self.groups[group]
        carried = sum(sum(cells) for _, _, cells in rows)
        return carried / sum(full * self.slices for _, full, _ in rows) if rows and self.slices else 0


def group_of(name, hosts):
    """The part of a leaf/spine fabric that a link, named "A port 1 -> B port 2", belongs to."""
    ends = [end.rsplit(" port ", 1)[0] for end in name.split(" -> ")]
    if ends[0] in hosts or ends[1] in hosts:
        return GROUPS[0] if ends[0] in hosts else GROUPS[3]
    return GROUPS[1] if ends[0].startswith("s1") else GROUPS[2]


def colour(share):
    """The first step that the share reaches."""
    return next(colour for least, colour, _ in STEPS if share >= least)


def strip(full, cells, slices, y, height, paths):
    """One link: rectangles of equal colour, joined, into the colour's path; nothing where it is idle."""
    columns = min(COLUMNS, slices)
    shades = []
    for column in range(columns):
        part = cells[column * slices // columns:(column + 1) * slices // columns]
        part = part or [0]
        shades.append(colour(sum(part) / (full * len(part))))
    start = 0
    for end in range(1, columns + 1):
        if end == columns or shades[end] != shades[start]:
            if shades[start] != STEPS[-1][1]:
                paths.setdefault(shades[start], []).append(
                    f"M{LEFT + WIDTH * start / columns:g} {y:.1f}h{WIDTH * (end - start) / columns:g}v{height:.1f}"
                    f"h{-WIDTH * (end - start) / columns:g}z")
            start = end


def draw(line, name, longest, ideal, subtitle):
    """A row a link, in groups; `longest` slices are the whole width, so that pictures of one placement compare."""
    rows = sum(len(links) for links in line.groups.values())
    pitch = min(9.0, HEIGHT / rows)
    body, paths, y = [], {}, float(TOP)
    for group, links in line.groups.items():
        height = pitch * len(links)
        body.append(plots.text(LEFT - 10, y + height / 2 - 3, group, 12, "end"))
        body.append(plots.text(LEFT - 10, y + height / 2 + 12, f"{100 * line.mean_use(group):.0f} % used", 11, "end",
                               'fill="#555"'))
        for _, full, cells in links:
            padded = cells + [0.0] * (longest - len(cells))
            strip(full, padded, longest, y, pitch - (0.8 if pitch > 4 else 0), paths)
            y += pitch
        body.append(f'<rect x="{LEFT}" y="{y - height:.1f}" width="{WIDTH}" height="{height:.1f}" fill="none" '
                    'stroke="#999"/>')
        y += 10
    body = [f'<path fill="{shade}" d="{"".join(parts)}"/>' for shade, parts in paths.items()] + body
    body += axis(line, longest, ideal, y)
    for i, (_, shade, label) in enumerate(reversed(STEPS)):
        body.append(f'<rect x="{LEFT + 140 * i}" y="{y + 30:.1f}" width="14" height="10" fill="{shade}" stroke="#999"/>')
        body.append(plots.text(LEFT + 140 * i + 20, y + 39, label, 11))
    return plots.page(LEFT + WIDTH + 30, y + 60, f"{name}: use of links over time (modelled wire)",
                      subtitle + "; a row is a link", body)


def axis(line, longest, ideal, y):
    """Wall-clock milliseconds, where the ideal ends, and where all but the bytes that _cut() left out had come."""
    whole = longest * line.slice_us * line.scale / 1000
    step = next(s for s in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 10 ** 9) if whole / s <= 10)
    body = [plots.text(LEFT + WIDTH * t / whole, y + 8, f"{t:g}", 10, "middle") for t in range(0, int(whole) + 1, step)]
    body.append(plots.text(LEFT + WIDTH + 8, y + 8, "ms", 10))
    marks = sorted(((ideal, "ideal", "5 3"), (line.ms(), "99.8 % of the bytes:", "none")))
    for when, label, dash in marks:
        x = LEFT + WIDTH * when / whole
        body.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{y - 6:.1f}" stroke="black" '
                    f'stroke-dasharray="{dash}"/>')
        # The earlier one's label is left of its line, the later one's right of it where there is room.
        is_left = when == marks[0][0] or when > 0.8 * whole
        body.append(plots.text(x - 4 if is_left else x + 4, TOP - 10, f"{label} {when:.0f} ms", 11,
                               "end" if is_left else "start"))
    return body
