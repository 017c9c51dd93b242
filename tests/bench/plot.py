"""Bar charts as SVG, by hand: groups of horizontal bars with a mark where the goal is."""

from xml.sax.saxutils import escape

COLOURS = {"direct": "#9aa5b1", "twemproxy": "#c9b27c", "holdfast": "#2f6f9f"}
BAR, GAP, LEFT, WIDTH, TOP = 15, 14, 250, 560, 46


def bars(path, title, unit, groups):
    """groups: [(label, [(name, value, goal or None), ...])]; writes the file."""
    longest = max([max(v, goal or 0) for _, rows in groups for _, v, goal in rows] + [1e-9])
    height = TOP + sum(GAP + BAR * len(rows) for _, rows in groups) + 34
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">'
           % (LEFT + WIDTH + 90, height),
           '<rect width="100%" height="100%" fill="#fff"/>',
           '<text x="12" y="22" font-size="14" font-weight="bold">%s</text>' % escape(title),
           '<text x="%d" y="38" fill="#555">%s</text>' % (LEFT, escape(unit))]
    y = TOP + 4
    for label, rows in groups:
        out.append('<text x="%d" y="%d" text-anchor="end">%s</text>'
                   % (LEFT - 8, y + BAR * len(rows) / 2 + 4, escape(label)))
        for name, value, goal in rows:
            width = value / longest * WIDTH
            out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>'
                       % (LEFT, y, width, BAR - 2, COLOURS.get(name, "#2f6f9f")))
            out.append('<text x="%.1f" y="%d" fill="#333">%s</text>'
                       % (LEFT + width + 5, y + BAR - 5, escape("%s %s" % (text(value), name))))
            if goal:
                x = LEFT + goal / longest * WIDTH
                out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#c0392b" stroke-width="2"/>'
                           % (x, x, y - 2, y + BAR))
            y += BAR
        y += GAP
    out.append('<text x="%d" y="%d" fill="#c0392b">red line: the goal</text>' % (LEFT, height - 10))
    out.append("</svg>")
    with open(path, "w", encoding="utf-8") as svg:
        svg.write("\n".join(out) + "\n")


def text(value):
    return "%.0f" % value if value >= 100 else "%.2f" % value
