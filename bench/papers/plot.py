"""A plot of a few curves as SVG, with the standard library alone."""
import math
from xml.sax.saxutils import escape

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
LEFT, TOP, WIDTH, HEIGHT = 80, 66, 540, 300
MODELLED = "Modelled: simulated packet by packet; nothing here was measured on hardware."


class Axis:
    """From 0 in even steps, or by 1, 2, 5 and 10."""

    def __init__(self, values, pixels, log=False):
        self.pixels, self.log, most = pixels, log, max(values)
        if log:
            steps = [part * 10.0 ** i for i in range(-3, 9) for part in (1, 2, 5)]
            least = max(step for step in steps if step <= min(values))
            most = min(step for step in steps if step > most)
            self.ticks = [step for step in steps if least <= step <= most]
            self.low, self.high = math.log10(least), math.log10(most)
        else:
            unit = 10.0 ** math.floor(math.log10(most / 5))
            step = next(unit * part for part in (1, 2, 2.5, 5, 10) if unit * part >= most / 6)
            self.low, self.high = 0, step * math.ceil(most / step - 1e-9)
            self.ticks = [step * i for i in range(round(self.high / step) + 1)]

    def at(self, value):
        """Pixels from the axis' beginning."""
        return self.pixels * ((math.log10(value) if self.log else value) - self.low) / (self.high - self.low)


def text(x, y, words, more=""):
    return '<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, more, escape(words))


def number(value):
    return "{:,.0f}".format(value) if value >= 1000 else "%.4g" % value


def frame(x, y, x_title, y_title):
    """The box, ticks with lines across it, and what the axes are."""
    out = []
    for value in x.ticks:
        at = LEFT + x.at(value)
        out += ['<path d="M%.1f %d v%d" stroke="#ddd"/>' % (at, TOP, HEIGHT),
                text(at, TOP + HEIGHT + 17, number(value), 'text-anchor="middle"')]
    for value in y.ticks:
        at = TOP + HEIGHT - y.at(value)
        out += ['<path d="M%d %.1f h%d" stroke="#ddd"/>' % (LEFT, at, WIDTH),
                text(LEFT - 7, at + 4, number(value), 'text-anchor="end"')]
    return out + [
        '<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>' % (LEFT, TOP, WIDTH, HEIGHT),
        text(LEFT + WIDTH / 2, TOP + HEIGHT + 36, x_title, 'text-anchor="middle"'),
        '<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">%s</text>' % (
            TOP + HEIGHT / 2, escape(y_title))]


def dashes_of(index):
    return ' stroke-dasharray="9 6"' if index % 2 else ""


def curve(x, y, index, points):
    """Every other one is dashed, with small spots, and lies over the others: curves that coincide are all seen."""
    color, radius = COLORS[index % len(COLORS)], 2.5 if index % 2 else 4
    spots = [(LEFT + x.at(a), TOP + HEIGHT - y.at(b)) for a, b in points]
    return ['<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>' % (
        " ".join("%.1f,%.1f" % spot for spot in spots), color, dashes_of(index))] + [
            '<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>' % (*spot, radius, color) for spot in spots]


def plot(path, title, subtitle, x_title, y_title, series, log=False, marks=(), source=MODELLED):
    """series: (label, [(x, y)...]); marks: (index of a series, x, label), lines across the plot; source: of the figures."""
    x = Axis([a for _, points in series for a, _ in points] + [mark[1] for mark in marks], WIDTH)
    y = Axis([b for _, points in series for _, b in points], HEIGHT, log)
    rows = len(series) + len(marks)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="DejaVu Sans, Helvetica, Arial, '
           'sans-serif" font-size="12">' % (LEFT + WIDTH + 30, TOP + HEIGHT + 58 + 18 * rows),
           '<rect width="100%" height="100%" fill="white"/>',
           text(LEFT, 24, title, 'font-size="15" font-weight="bold"'), text(LEFT, 41, subtitle, 'fill="#444"'),
           text(LEFT, 57, source, 'fill="#444" font-size="11"')] + frame(x, y, x_title, y_title)
    legend = [(label, index, 3, dashes_of(index)) for index, (label, _) in enumerate(series)]
    for index, at, label in marks:
        out.append('<path d="M%.1f %d v%d" stroke="%s" stroke-dasharray="5 4"/>' % (
            LEFT + x.at(at), TOP, HEIGHT, COLORS[index % len(COLORS)]))
        legend.append((label, index, 1, ' stroke-dasharray="5 4"'))
    for index in sorted(range(len(series)), key=lambda index: index % 2):
        out += curve(x, y, index, series[index][1])
    for row, (label, index, thick, dashes) in enumerate(legend):
        below = TOP + HEIGHT + 60 + 18 * row
        out += ['<path d="M%d %d h24" stroke="%s" stroke-width="%d"%s/>' % (
            LEFT, below - 4, COLORS[index % len(COLORS)], thick, dashes), text(LEFT + 30, below, label)]
    with open(path, "w", encoding="utf-8") as sheet:
        sheet.write("\n".join(out + ["</svg>\n"]))
