"""A plot of a few curves as SVG, with the standard library alone."""
from xml.sax.saxutils import escape

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
LEFT, TOP, WIDTH, HEIGHT = 70, 44, 520, 300


def round_up(value):
    """The next of 1, 2, 5 times a power of ten."""
    step = 1.0
    while step < value:
        step *= 10
    while step / 10 >= value:
        step /= 10
    return next(step * part for part in (0.1, 0.2, 0.5, 1) if step * part >= value)


def plot(path, title, x_title, y_title, series):
    """series: (label, [(x, y)...]); axes from 0, high latencies cut at ten times the lowest."""
    lowest = min(y for _, points in series for _, y in points)
    x_most = round_up(max(x for _, points in series for x, _ in points))
    y_most = round_up(min(max(y for _, points in series for _, y in points), 20 * lowest))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">'
           % (LEFT + WIDTH + 20, TOP + HEIGHT + 60 + 16 * len(series)),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="%d" y="24" font-size="14" font-weight="bold">%s</text>' % (LEFT, escape(title)),
           '<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>' % (LEFT, TOP, WIDTH, HEIGHT),
           '<text x="%d" y="%d" text-anchor="middle">%s</text>' % (LEFT + WIDTH / 2, TOP + HEIGHT + 34, escape(x_title)),
           '<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">%s</text>'
           % (TOP + HEIGHT / 2, escape(y_title))]
    for i in range(6):
        x, y = LEFT + WIDTH * i / 5, TOP + HEIGHT - HEIGHT * i / 5
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%.4g</text>' % (x, TOP + HEIGHT + 16, x_most * i / 5))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%.4g</text>' % (LEFT - 6, y + 4, y_most * i / 5))
    for number, (label, points) in enumerate(series):
        color = COLORS[number % len(COLORS)]
        spots = ["%.1f,%.1f" % (LEFT + WIDTH * x / x_most, TOP + HEIGHT - HEIGHT * y / y_most)
                 for x, y in points if y <= y_most]
        below = TOP + HEIGHT + 54 + 16 * number
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (" ".join(spots), color))
        out += ['<circle cx="%s" cy="%s" r="3" fill="%s"/>' % (*spot.split(","), color) for spot in spots]
        out.append('<rect x="%d" y="%d" width="18" height="4" fill="%s"/><text x="%d" y="%d">%s</text>'
                   % (LEFT, below - 6, color, LEFT + 26, below, escape(label)))
    with open(path, "w", encoding="utf-8") as sheet:
        sheet.write("\n".join(out + ["</svg>\n"]))
