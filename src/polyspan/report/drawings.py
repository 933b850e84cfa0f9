"""Figures that can be taken away: heatmap, ordered matrix, silhouette, flow, survival, map."""

from collections.abc import Sequence

import numpy as np

from polyspan.report.charts import open_svg, png, text
from polyspan.report.markup import clean, escape, number
from polyspan.runtime.messages import plural

HEAT = ("#2b5c9e", "#8fb8de", "#f4f4f2", "#eca57a", "#b5401b")  # less, mean, more
# Charts are colored by the page; by themselves they need this.
ALONE = (
    ".chart{font-family:system-ui,sans-serif;background:#fff}"
    ".chart text{font-size:13px;fill:#3a4554}.chart .small{font-size:11px}"
    ".grid{stroke:#dfe4ea;fill:none}.mark{stroke:#566273;stroke-dasharray:3 3;fill:none}"
    ".column{fill:#0b62a8}.line{fill:none;stroke-width:2;stroke:currentColor}"
    ".dot{fill:currentColor}.s0{color:#0b62a8}.s1{color:#c65a00}.s2{color:#00795a}"
    ".s3{color:#a04a86}.s4{color:#5b6470}.s5{color:#6a4fb3}"
    ".frame{fill:none;stroke:#d95f02;stroke-width:1.2}"
)


def alone(svg: str) -> str:
    """A chart as a file of its own."""
    head, _, rest = svg.partition(">")
    head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{head}><style>{ALONE}</style>{rest}\n"


def short(name: str, most: int = 28) -> str:
    """A name that fits beside a chart.

    Examples
    --------
    >>> short("C18.3n.3"), short("a very long name", 8)
    ('C18.3n.3', 'a very…')
    """
    name = clean(name)
    return name if len(name) <= most else name[: most - 1].rstrip() + "\u2026"


def strip(sizes: np.ndarray, colors: Sequence[str], box: tuple[float, float, float, float]) -> str:
    """The clusters as a line of colored pieces; ``box`` is x, y, width, height."""
    x, y, width, height = box
    ends = np.cumsum(sizes) / sizes.sum()
    out = []
    for k, end in enumerate(ends):
        start = end - sizes[k] / sizes.sum()
        out.append(
            f'<rect x="{x + width * start:.2f}" y="{y}" width="{width * (end - start):.2f}" '
            f'height="{height}" fill="{colors[k]}"/>'
        )
    return "".join(out)


def heatmap(
    values: np.ndarray, rows: Sequence[str], sizes: np.ndarray, colors: Sequence[str],
    names: Sequence[str],
) -> str:  # fmt: skip
    """Standardized features (rows) of samples (columns, sorted by cluster) in shades."""
    left, top, wide, tall = 210, 44, 720, 17
    height = top + tall * len(rows) + 30
    out = [open_svg(left + wide + 10, height, "Best features of the clusters, sample by sample")]
    ends = np.cumsum(sizes) / sizes.sum()
    for k, end in enumerate(ends):
        middle = left + wide * (end - sizes[k] / sizes.sum() / 2)
        if sizes[k] / sizes.sum() > 0.03:
            out.append(text(middle, 20, short(names[k], 10), "middle"))
    out.append(strip(sizes, colors, (left, 28, wide, 10)))
    levels = np.round(127.5 * (np.clip(values, -2.5, 2.5) / 2.5 + 1))
    out.append(
        f'<image href="{png(levels, HEAT)}" x="{left}" y="{top}" width="{wide}" '
        f'height="{tall * len(rows)}" preserveAspectRatio="none" '
        'style="image-rendering:pixelated"/>'
    )
    for i, name in enumerate(rows):
        shown = f"<title>{escape(name)}</title>{escape(short(name))}"
        y = top + tall * (i + 0.5) + 4
        out.append(f'<text x="{left - 8}" y="{y:.1f}" text-anchor="end">{shown}</text>')
    y = top + tall * len(rows) + 12
    legend = png(np.arange(256)[None, :], HEAT)
    out.append(
        f'<image href="{legend}" x="{left}" y="{y}" width="120" height="9" '
        'preserveAspectRatio="none"/>'
    )
    out.append(text(left - 8, y + 9, "\u22122.5 SD", "end"))
    out.append(text(left + 126, y + 9, "+2.5 SD from the mean", "start"))
    return "".join(out) + "</svg>"


def matrix(shades: np.ndarray, sizes: np.ndarray, colors: Sequence[str], name: str) -> str:
    """An ordered matrix of values between 0 and 1, with the clusters framed."""
    side, at = 560, 16
    out = [open_svg(side + at + 2, side + at + 2, name)]
    out.append(strip(sizes, colors, (at, 0, side, 10)))
    turned = strip(sizes, colors, (0, 0, side, 10))
    out.append(f'<g transform="translate(10 {at}) rotate(90)">{turned}</g>')
    levels = np.round(255 * np.clip(shades, 0, 1))
    out.append(
        f'<image href="{png(levels)}" x="{at}" y="{at}" width="{side}" height="{side}" '
        'preserveAspectRatio="none" style="image-rendering:pixelated"/>'
    )
    if len(sizes) <= 60:  # more frames would hide the picture
        ends = np.cumsum(sizes) / sizes.sum() * side
        for k, end in enumerate(ends):
            size = sizes[k] / sizes.sum() * side
            box = f'x="{at + end - size:.1f}" y="{at + end - size:.1f}"'
            out.append(f'<rect class="frame" {box} width="{size:.1f}" height="{size:.1f}"/>')
    return "".join(out) + "</svg>"


def silhouettes(
    values: np.ndarray, codes: np.ndarray, colors: Sequence[str], names: Sequence[str]
) -> str:
    """Silhouettes of the samples, the largest first in every cluster."""
    width, height, left, top = 560, 260, 44, 10
    order = np.lexsort((-values, codes))
    kept = order[np.linspace(0, len(order) - 1, min(len(order), 500)).round().astype(int)]
    step = (width - left - 6) / len(kept)
    low = min(0.0, float(values.min()))
    scale = (height - top - 34) / (1 - low)
    zero = top + scale
    out = [open_svg(width, height, "Silhouette of every sample, by cluster")]
    for tick in sorted({0.0, 0.5, 1.0} | ({-0.5} if low < -0.4 else set())):
        y = zero - tick * scale
        out.append(f'<path class="grid" d="M{left} {y:.1f}H{width - 6}"/>')
        out.append(text(left - 6, y + 4, f"{tick:g}".replace("-", "\u2212"), "end"))
    for place, i in enumerate(kept):
        h = abs(values[i]) * scale
        y = zero - h if values[i] >= 0 else zero
        out.append(
            f'<rect x="{left + place * step:.2f}" y="{y:.1f}" width="{max(step, 0.8):.2f}" '
            f'height="{h:.1f}" fill="{colors[codes[i]]}"/>'
        )
    shares = np.bincount(codes[kept], minlength=len(names))
    middles = np.cumsum(shares) - shares / 2
    for k, name in enumerate(names):
        if shares[k] * step > 16:
            out.append(text(left + middles[k] * step, height - 8, short(name, 8), "middle"))
    return "".join(out) + "</svg>"


def flow(
    counts: np.ndarray, colors: Sequence[str], names: Sequence[str], others: Sequence[str],
    title: str,
) -> str:  # fmt: skip
    """Bands from the clusters here (left) to those of another clustering (right)."""
    width, tall, gap, top = 360, 300, 6, 24
    n = counts.sum()
    out = [open_svg(width, top + tall + gap * max(counts.shape) + 8, title)]
    out.append(text(58, 14, "here", "middle"))
    out.append(text(width - 58, 14, "there", "middle"))

    def starts(sizes: np.ndarray) -> np.ndarray:
        return top + (np.cumsum(sizes) - sizes) / n * tall + gap * np.arange(len(sizes))

    left, right = starts(counts.sum(axis=1)), starts(counts.sum(axis=0))
    from_at, to_at = left.copy(), right.copy()
    x0, x1, middle = 72, width - 72, width / 2
    for k, j in np.argwhere(counts > 0):
        h = counts[k, j] / n * tall
        a, b = from_at[k], to_at[j]
        from_at[k] += h
        to_at[j] += h
        told = f"{names[k]} to {others[j]}: {plural(int(counts[k, j]), 'sample')}"
        out.append(
            f'<path d="M{x0} {a:.1f}C{middle} {a:.1f} {middle} {b:.1f} {x1} {b:.1f}V{b + h:.1f}'
            f'C{middle} {b + h:.1f} {middle} {a + h:.1f} {x0} {a + h:.1f}Z" fill="{colors[k]}" '
            f'fill-opacity=".45"><title>{escape(told)}</title></path>'
        )
    for at, sizes, x, labels, anchor, where in (
        (left, counts.sum(axis=1), x0 - 8, names, "end", x0 - 12),
        (right, counts.sum(axis=0), x1, others, "start", x1 + 12),
    ):
        for k, size in enumerate(sizes):
            h = size / n * tall
            fill = colors[k] if anchor == "end" else "#8a94a3"
            out.append(f'<rect x="{x}" y="{at[k]:.1f}" width="8" height="{h:.1f}" fill="{fill}"/>')
            out.append(text(where, at[k] + h / 2 + 4, short(f"{labels[k]} ({size})", 11), anchor))
    return "".join(out) + "</svg>"


def scatter(xs: np.ndarray, ys: np.ndarray, codes: np.ndarray, colors: Sequence[str],
            name: str) -> str:  # fmt: skip
    """A map as a figure: one dot per sample, coordinates between 0 and 1."""
    side = 460
    r = 3.2 if len(xs) <= 2000 else 1.4
    dots = "".join(
        f'<circle cx="{20 + x * side:.1f}" cy="{20 + (1 - y) * side:.1f}" r="{r}" '
        f'fill="{colors[k]}"/>'
        for x, y, k in zip(xs, ys, codes, strict=True)
    )
    return open_svg(side + 40, side + 40, name) + dots + "</svg>"


def steps(
    curves: Sequence[tuple[np.ndarray, np.ndarray]], colors: Sequence[str], names: Sequence[str],
    ticks: np.ndarray, at_risk: np.ndarray, label: str,
) -> str:  # fmt: skip
    """Kaplan-Meier curves with the numbers at risk below."""
    width, left, top, tall = 680, 96, 12, 260
    wide = width - left - 16
    row = 18
    height = top + tall + 62 + row * len(names)
    last = max(float(times[-1]) for times, _ in curves) or 1.0
    out = [open_svg(width, height, "Survival of the clusters")]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = top + tall * (1 - share)
        out.append(f'<path class="grid" d="M{left} {y:.1f}H{width - 16}"/>')
        out.append(text(left - 8, y + 4, f"{share:g}", "end"))
    for k, (times, alive) in enumerate(curves):
        points = [f"M{left} {top:.1f}"]
        for t, s in zip(times, alive, strict=True):
            points.append(f"H{left + wide * t / last:.1f}V{top + tall * (1 - s):.1f}")
        out.append(
            f'<path d="{"".join(points)}" fill="none" stroke="{colors[k]}" stroke-width="2">'
            f"<title>{escape(names[k])}</title></path>"
        )
    for t in ticks:
        x = left + wide * t / last
        out.append(text(x, top + tall + 18, number(float(t)), "middle"))
    out.append(text(left + wide / 2, top + tall + 36, short(label, 40), "middle"))
    y = top + tall + 56
    out.append(text(left - 8, y - 20, "at risk", "end"))
    for k, name in enumerate(names):
        out.append(
            f'<rect x="4" y="{y + row * k - 10:.1f}" width="10" height="10" fill="{colors[k]}"/>'
        )
        out.append(text(left - 18, y + row * k, short(name, 10), "end"))
        for t, count in zip(ticks, at_risk[k], strict=True):
            out.append(text(left + wide * t / last, y + row * k, str(count), "middle"))
    return "".join(out) + "</svg>"
