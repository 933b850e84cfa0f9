"""Pieces of the page: escaped text, tables, bars, charts as SVG, pictures as PNG."""

import base64
import html
import json
import math
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

SHADES = ("#ffffff", "#d6e5f4", "#8fc0e0", "#3d8ac2", "#0b4f8f", "#082f5c")  # of the affinity
# Control characters have no place in HTML, nor have halves of surrogate pairs in UTF-8.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: Any) -> str:
    """Text without characters that no HTML file can hold."""
    return UNPRINTABLE.sub("\ufffd", str(text))


def escape(text: Any) -> str:
    """Any text as HTML shows it, in elements and in quoted attributes.

    Examples
    --------
    >>> escape('<b "x">')
    '&lt;b &quot;x&quot;&gt;'
    """
    return html.escape(clean(text), quote=True)


def user(text: Any) -> str:
    """Text from outside, escaped and kept from turning what stands around it right to left."""
    return f"<bdi>{escape(text)}</bdi>"


def to_json(value: Any) -> str:
    r"""JSON for a script element: no text in it can end the element.

    Examples
    --------
    >>> to_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for mark in "<>&":  # in JSON these can only stand inside strings
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def packed(values: np.ndarray, kind: str) -> str:
    """Numbers as base64 of little-endian integers."""
    numbers = np.asarray(values).astype(np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(numbers.tobytes()).decode()


def number(value: Any, digits: int = 3) -> str:
    """A number for people: a few digits, groups of thousands, a real minus sign.

    Examples
    --------
    >>> [number(x) for x in (0.123456, 20000, 1e-7, -2.5, 3.0, float("nan"))]
    ['0.123', '20,000', '1.00e-7', '\u22122.5', '3', '\u2013']
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    value = float(value)
    if not math.isfinite(value):
        return "\u2013" if math.isnan(value) else ("\u221e" if value > 0 else "\u2212\u221e")
    size = abs(value)
    if value == int(value) and size < 1e9:
        text = f"{int(value):,}"
    elif size < 1e-3 or size >= 1e6:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(power)}"
    elif size < 1:
        text = f"{value:.{digits}f}"
    else:
        places = max(0, digits - 1 - math.floor(math.log10(size)))
        text = f"{value:,.{places}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return "\u2212" + text[1:] if text.startswith("-") else text


def percent(share: float) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> [percent(x) for x in (0, 0.0001, 0.123, 0.9999, 1)]
    ['0%', '<0.1%', '12.3%', '>99.9%', '100%']
    """
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return ">99.9%"
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


def plural(count: int, noun: str) -> str:
    """Count things.

    Examples
    --------
    >>> plural(1, "view"), plural(20000, "sample")
    ('1 view', '20,000 samples')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def setting(value: Any) -> str:
    """A parameter's value in short; addresses in memory would change from run to run.

    Examples
    --------
    >>> setting(0.001), setting("unit"), setting(np.random.RandomState(0))
    ('0.001', "'unit'", 'RandomState(MT19937)')
    """
    if isinstance(value, Mapping):
        text = ", ".join(f"{name}={setting(part)}" for name, part in value.items())
    elif isinstance(value, np.generic):
        text = repr(value.item())
    else:
        text = " ".join(repr(value).split())
    text = re.sub(r" at 0x[0-9A-Fa-f]+", "", text)
    return text if len(text) <= 300 else text[:297] + "..."


def bar(share: float, text: str, color: str = "") -> str:
    """A horizontal bar with its number."""
    width = f"{100 * min(max(share, 0), 1):.1f}%"
    fill = f"width:{width}" + (f";background:{color}" if color else "")
    return (
        f'<span class="bar"><span class="track"><span class="fill" style="{fill}"></span></span>'
        f'<span class="value">{escape(text)}</span></span>'
    )


def table(
    heads: Sequence[str], rows: Sequence[Sequence[tuple[str, Any]]], *, name: str, sort: bool = True
) -> str:
    """A table from cells (HTML, value to sort by: a number, a text or None)."""
    if sort:
        heads = [f'<button type="button">{head}</button>' for head in heads]
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    body = []
    for row in rows:
        cells = []
        for shown, value in row:
            numeric = isinstance(value, int | float) and not isinstance(value, bool)
            known = numeric and math.isfinite(value)
            attributes = ' class="n"' if numeric else ""
            if known:
                attributes += f' data-v="{value:.9g}"'
            elif not numeric and value is not None:
                attributes += f' data-v="{escape(value)}"'
            cells.append(f"<td{attributes}>{shown}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    kind = ' class="sortable"' if sort else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
        f"<table{kind}><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def png(levels: np.ndarray) -> str:
    """A picture of a matrix of 0..255 in the shades of the affinity, as a data address."""
    stops = np.array([[int(s[k : k + 2], 16) for k in (1, 3, 5)] for s in SHADES], dtype=float)
    at = np.linspace(0, len(SHADES) - 1, 256)
    colors = np.stack([np.interp(at, np.arange(len(SHADES)), stops[:, k]) for k in range(3)], 1)
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
    """Bars of how many of the values, all in 0..1, lie where."""
    counts = np.histogram(values, bins=n_bins, range=(0, 1))[0]
    width, height, left, top, bottom = 420, 190, 44, 10, 36
    step = (width - left - 8) / n_bins
    tall = height - top - bottom
    most = max(int(counts.max()), 1)
    out = [_open_svg(width, height, name)]
    for share in (0, 0.5, 1):
        y = top + tall * (1 - share)
        if share * most == int(share * most):
            out.append(f'<path class="grid" d="M{left} {y:.1f}H{width - 8}"/>')
            out.append(_text(left - 6, y + 4, number(share * most), "end"))
    for k, count in enumerate(counts):
        h = tall * count / most
        tip = f"{k / n_bins:.2f} to {(k + 1) / n_bins:.2f}: {plural(int(count), 'sample')}"
        out.append(
            f'<rect class="column" x="{left + k * step + 1:.1f}" y="{top + tall - h:.1f}" '
            f'width="{step - 2:.1f}" height="{h:.1f}" rx="1.5"><title>{tip}</title></rect>'
        )
    for tick in (0, 0.25, 0.5, 0.75, 1):
        out.append(_text(left + tick * step * n_bins, height - 18, f"{tick:g}", "middle"))
    out.append(_text((left + width) / 2, height - 3, "certainty", "middle"))
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
    """Lines of (x, y) with a legend; points that an axis cannot show are left out."""
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

    out = [_open_svg(width, height, name)]
    for tick in _ticks(y0, y1, 6, whole=log):
        y = py(tick)
        shown = f"1e{tick:.0f}" if log else f"{tick:.6g}"
        out.append(f'<path class="grid" d="M{left} {y:.1f}H{width - right}"/>')
        out.append(_text(left - 6, y + 4, shown.replace("-", "\u2212"), "end"))
    for tick in _ticks(x0, x1, 7, whole=True):
        out.append(_text(px(tick), height - 20, number(tick), "middle"))
    out.append(_text((left + width - right) / 2, height - 4, x_label, "middle"))
    if mark_x is not None and x0 <= mark_x <= x1:
        out.append(f'<path class="mark" d="M{px(mark_x):.1f} {top}V{height - bottom}"/>')
    if mark_y is not None and (mark_y[0] > 0 or not log):
        y = py(scale(mark_y[0]))
        out.append(f'<path class="mark" d="M{left} {y:.1f}H{width - right}"/>')
        out.append(_text(left + 4, y - 5, mark_y[1], "start"))
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


def _open_svg(width: int, height: int, name: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(name)}">'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
