"""The elements that all SVG pictures of the benchmarks are made of."""
FONT = 'font-family="DejaVu Sans, Helvetica, Arial, sans-serif"'


def text(x, y, string, size=12, anchor="start", extra=""):
    """A text element."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" {FONT} {extra}>{string}</text>'


def page(width, height, title, subtitle, body):
    """A whole picture on white."""
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                      f'viewBox="0 0 {width} {height}">', f'<rect width="{width}" height="{height}" fill="white"/>',
                      text(20, 30, title, 18, extra='font-weight="bold"'), text(20, 50, subtitle, 12, extra='fill="#555"')]
                     + body + ["</svg>", ""])


def bar(x, y, width, height, colour):
    """A filled rectangle."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
