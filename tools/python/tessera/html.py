"""Tables of HTML and figures for people."""

from html import escape


def seconds(time):
    """`time` in seconds with a fitting unit; None as a dash."""
    if time is None:
        return "-"
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(time) * factor >= 1 or unit == "µs":
            return f"{time * factor:.3f} {unit}"
    raise AssertionError("the last unit takes every time")


def size(count):
    """`count` bytes in GiB."""
    return f"{count / 2**30:.2f} GiB"


def percent(ratio):
    return f"{ratio * 100:.1f} %"


def value(name, cell):
    """A cell of a table by the unit that its column's name ends in."""
    if cell is None:
        return ""
    if name.endswith("_bytes"):
        return size(cell)
    if name.endswith("_s") and not name.endswith("_per_s"):
        return seconds(cell)
    return f"{cell:.4g}" if isinstance(cell, float) else cell


def table(rows, header=(), caption=""):
    """An HTML table of `rows`; all text is escaped."""
    parts = ["<table>"]
    if caption:
        parts.append(f"<caption>{escape(str(caption))}</caption>")
    if header:
        parts.append("<tr>" + "".join(f"<th>{escape(str(cell))}</th>" for cell in header) + "</tr>")
    parts += ["<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows]
    return "".join([*parts, "</table>"])
