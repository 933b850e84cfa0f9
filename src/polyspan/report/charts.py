"""Pictures on the page: charts as SVG, the affinity as PNG."""

import base64
import math
import struct
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from polyspan.report.markup import clean, escape, number, user
from polyspan.runtime.messages import plural

SHADES = ("#ffffff", "#d6e5f4", "#8fc0e0", "#3d8ac2", "#0b4f8f", "#082f5c")  # of the affinity


def png(levels: np.ndarray, shades: Sequence[str] = SHADES) -> str:
    """A picture of a matrix of 0..255 in shades, those of the affinity, as a data URL."""
    stops = np.array([[int(s[k : k + 2], 16) for k in (1, 3, 5)] for s in shades], dtype=float)
    at = np.linspace(0, len(shades) - 1, 256)
    colors = np.stack([np.interp(at, np.arange(len(shades)), stops[:, k]) for k in range(3)], 1)
    height, width = levels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), levels.astype(np.uint8)], axis=1)
    data = b"\x89PNG\r\n\x1a\n"
    for kind, content in (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),  # 8 bits, palette
        (b"PLTE", np.round(colors).astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    ):
        check = struct.pack(">I", zlib.crc32(kind + content))
        data += struct.pack(">I", len(content)) + kind + content + check
    return "data:image/png;base64," + base64.b64encode(data).decode()


def histogram(values: np.ndarray, name: str, n_bins: int = 20) -> str:
    """A histogram of values between 0 and 1."""
    counts = np.histogram(values, bins=n_bins, range=(0, 1))[0]
    width, height, left, top, bottom = 420, 190, 44, 10, 36
    step = (width - left - 8) / n_bins
    tall = height - top - bottom
    most = max(int(counts.max()), 1)
    out = [open_svg(width, height, name)]
    for share in (0, 0.5, 1):
        y = top + tall * (1 - share)
        if share * most == int(share * most):
            out.append(f'<path class="grid" d="M{left} {y:.1f}H{width - 8}"/>')
            out.append(text(left - 6, y + 4, number(share * most), "end"))
    for k, count in enumerate(counts):
        h = tall * count / most
        tip = f"{k / n_bins:.2f} to {(k + 1) / n_bins:.2f}: {plural(int(count), 'sample')}"
        out.append(
            f'<rect class="column" x="{left + k * step + 1:.1f}" y="{top + tall - h:.1f}" '
            f'width="{step - 2:.1f}" height="{h:.1f}" rx="1.5"><title>{tip}</title></rect>'
        )
    for tick in (0, 0.25, 0.5, 0.75, 1):
        out.append(text(left + tick * step * n_bins, height - 18, f"{tick:g}", "middle"))
    out.append(text((left + width) / 2, height - 3, "certainty", "middle"))
    return "".join(out) + "</svg>"


def line_chart(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    name: str,
    x_label: str,
    *,
    log: bool = False,
    mark_x: float | None = None,
    mark_y: tuple[float, str] | None = None,
) -> str:
    """Lines through points (x, y), with a legend; points that an axis cannot show are left out."""
    kept = {}
    for label, (xs, ys) in series.items():
        pairs = [(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]
        pairs = [p for p in pairs if all(map(math.isfinite, p)) and (p[1] > 0 or not log)]
        if pairs:
            kept[label] = pairs
    if not kept:
        return ""
    width, height, left, right, top, bottom = 420, 250, 52, 12, 12, 38
    scale = math.log10 if log else float
    xs = [x for pairs in kept.values() for x, _ in pairs]
    ys = [scale(y) for pairs in kept.values() for _, y in pairs]
    if mark_y is not None and (mark_y[0] > 0 or not log):
        ys.append(scale(mark_y[0]))
    x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)
    if log:
        y0, y1 = math.floor(y0), math.ceil(y1)
    x1 += x1 == x0
    pad = 0 if log else 0.06 * (y1 - y0)
    y0, y1 = (y0 - pad, y1 + pad) if y1 > y0 else (y0 - 0.5, y1 + 0.5)

    def px(x: float) -> float:
        return left + (x - x0) / (x1 - x0) * (width - left - right)

    def py(y: float) -> float:
        return top + (y1 - y) / (y1 - y0) * (height - top - bottom)

    out = [open_svg(width, height, name)]
    for tick in _ticks(y0, y1, 6, whole=log):
        y = py(tick)
        shown = f"1e{tick:.0f}" if log else f"{tick:.6g}"
        out.append(f'<path class="grid" d="M{left} {y:.1f}H{width - right}"/>')
        out.append(text(left - 6, y + 4, shown.replace("-", "\u2212"), "end"))
    for tick in _ticks(x0, x1, 7, whole=True):
        out.append(text(px(tick), height - 20, number(tick), "middle"))
    out.append(text((left + width - right) / 2, height - 4, x_label, "middle"))
    if mark_x is not None and x0 <= mark_x <= x1:
        out.append(f'<path class="mark" d="M{px(mark_x):.1f} {top}V{height - bottom}"/>')
    if mark_y is not None and (mark_y[0] > 0 or not log):
        y = py(scale(mark_y[0]))
        out.append(f'<path class="mark" d="M{left} {y:.1f}H{width - right}"/>')
        out.append(text(left + 4, y - 5, mark_y[1], "start"))
    for k, pairs in enumerate(kept.values()):
        line = "L".join(f"{px(x):.1f} {py(scale(y)):.1f}" for x, y in pairs)
        out.append(f'<path class="line s{k % 6}" d="M{line}"/>')
        if len(pairs) <= 40:
            for x, y in pairs:
                tip = f"{clean(list(kept)[k])}: {number(y)} at {number(x)}"
                out.append(
                    f'<circle class="dot s{k % 6}" cx="{px(x):.1f}" cy="{py(scale(y)):.1f}" '
                    f'r="2.6"><title>{escape(tip)}</title></circle>'
                )
    keys = "".join(
        f'<li><svg class="key" viewBox="0 0 24 8" aria-hidden="true">'
        f'<path class="line s{k % 6}" d="M1 4H23"/></svg>{user(label)}</li>'
        for k, label in enumerate(kept)
    )
    return "".join(out) + f'</svg><ul class="keys">{keys}</ul>'


def _ticks(low: float, high: float, most: int, *, whole: bool) -> list[float]:
    """Round numbers in a range."""
    rough = (high - low) / most
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
    step = max(1, round(step)) if whole else step
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def open_svg(width: float, height: float, name: str) -> str:
    """The opening tag of a chart."""
    box = f'viewBox="0 0 {width:g} {height:g}"'
    return f'<svg class="chart" {box} role="img" aria-label="{escape(name)}">'


def text(x: float, y: float, words: str, anchor: str) -> str:
    """Words in a chart."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
