"""A picture of lines over two logarithmic axes, as SVG text: light and dark, colours that the colour-blind tell apart."""
import math
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 840, 440, 64, 270, 44, 48
COLOURS = ("#4477aa", "#ee6677", "#228833", "#b8860b", "#66ccee", "#aa3377")
DASHES = ("", "6 3", "2 3")
STYLE = """<style>
.page { fill: #ffffff } .word { fill: #333333 } .rule { stroke: #dddddd }
@media (prefers-color-scheme: dark) { .page { fill: #16181d } .word { fill: #dddddd } .rule { stroke: #3a3d44 } }
</style>"""


def ticks(low, high):
    """1, 2 and 5 times powers of ten from the one below `low` to the one above `high`."""
    steps = [factor * 10.0**power for power in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1) for factor in (1, 2, 5)]
    first = max(step for step in steps if step <= low * 1.0001)
    last = min(step for step in steps if step >= high * 0.9999)
    return [step for step in steps if first <= step <= last]


def place(value, low, high, start, end):
    share = 0.5 if low == high else math.log(value / low) / math.log(high / low)
    return round(start + share * (end - start), 1)


def text(x, y, words, anchor="start", size=11, extra=""):
    return f'<text class="word" x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'


def grid(xs, ys):
    """Rules of both axes with their numbers, and the functions from values to pixels."""
    levels = ticks(min(ys), max(ys))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    to_x = lambda x: place(x, min(xs), max(xs), LEFT, right)
    to_y = lambda y: place(y, levels[0], levels[-1], bottom, TOP)
    parts = [f'<line class="rule" x1="{LEFT}" y1="{to_y(level)}" x2="{right}" y2="{to_y(level)}"/>' + text(LEFT - 6, to_y(level) + 4, f"{level:g}", "end")
             for level in levels]
    parts += [text(to_x(x), bottom + 16, f"{x:g}", "middle") for x in sorted(set(xs))]
    return parts, to_x, to_y


def line(index, name, points, to_x, to_y):
    colour, dash = COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]
    path = " ".join(f"{to_x(x)},{to_y(y)}" for x, y in points)
    legend = TOP + 8 + 18 * index
    stroke = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
    dots = "".join(f'<circle cx="{to_x(x)}" cy="{to_y(y)}" r="3" fill="{colour}"><title>{escape(name)}: {x:g}, {y:.4g}</title></circle>' for x, y in points)
    key = f'<line x1="{WIDTH - RIGHT + 16}" y1="{legend}" x2="{WIDTH - RIGHT + 44}" y2="{legend}" {stroke}/>'
    return f'<polyline points="{path}" {stroke}/>{dots}{key}' + text(WIDTH - RIGHT + 50, legend + 4, name)


def line_chart(title, x_label, y_label, series):
    """`series`: name -> [(x, y)], x and y above 0."""
    points = [point for line_points in series.values() for point in line_points]
    parts, to_x, to_y = grid([x for x, _ in points], [y for _, y in points])
    parts += [line(index, name, line_points, to_x, to_y) for index, (name, line_points) in enumerate(series.items())]
    labels = [text(12, 22, title, size=13, extra=' font-weight="bold"'), text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_label, "middle"), text(12, TOP - 6, y_label)]
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
                      "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">", STYLE, f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>', *labels, *parts, "</svg>\n"])
