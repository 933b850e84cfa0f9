"""Parts of the page: escaped text, readable numbers, tables, bars."""

import base64
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# HTML allows no control characters, and UTF-8 no halves of surrogate pairs.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: Any) -> str:
    """Text without characters that no HTML file can hold."""
    return UNPRINTABLE.sub("\ufffd", str(text))


def escape(text: Any) -> str:
    """Escape any text for HTML, in elements and in quoted attributes.

    Examples
    --------
    >>> escape('<b "x">')
    '&lt;b &quot;x&quot;&gt;'
    """
    return html.escape(clean(text), quote=True)


def user(text: Any) -> str:
    """Text from outside, escaped, and isolated so that right-to-left text stays inside it."""
    return f"<bdi>{escape(text)}</bdi>"


def to_json(value: Any) -> str:
    r"""JSON for a script element: no text in it can end the element.

    Examples
    --------
    >>> to_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for mark in "<>&":  # in JSON these occur only inside strings
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def packed(values: np.ndarray, kind: str) -> str:
    """Numbers as base64 of little-endian integers."""
    numbers = np.asarray(values).astype(np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(numbers.tobytes()).decode()


def number(value: Any, digits: int = 3) -> str:
    """A readable number: a few digits, thousands separated, a real minus sign.

    Examples
    --------
    >>> [number(x) for x in (0.123456, 20000, 1e-7, -2.5, 3.0, float("nan"))]
    ['0.123', '20,000', '1.00e-7', '\u22122.5', '3', '\u2013']
    """
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


def setting(value: Any) -> str:
    """A parameter's value in short, without memory addresses, which change from run to run.

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


def cell(value: str | float | None) -> tuple[str, Any]:
    """Text from outside or a number as a cell of a table; None is a dash.

    Examples
    --------
    >>> cell("a<b"), cell(0.12345), cell(None)
    (('<bdi>a&lt;b</bdi>', 'a<b'), ('0.123', 0.12345), ('\u2013', None))
    """
    if value is None:
        return "\u2013", None
    return (user(value) if isinstance(value, str) else number(value)), value


def table(heads: Sequence[str], rows: Sequence[Sequence[tuple[str, Any]]], *, name: str) -> str:
    """A table from cells (HTML, value to sort by: a number, a text or None)."""
    top = "".join(f'<th scope="col"><button type="button">{head}</button></th>' for head in heads)
    body = []
    for row in rows:
        cells = []
        for shown, value in row:
            numeric = isinstance(value, int | float)
            known = numeric and math.isfinite(value)
            attributes = ' class="n"' if numeric else ""
            if known:
                attributes += f' data-v="{value:.9g}"'
            elif not numeric and value is not None:
                attributes += f' data-v="{escape(value)}"'
            cells.append(f"<td{attributes}>{shown}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
        f'<table class="sortable"><thead><tr>{top}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
        f'<div class="save"><button type="button" data-save="CSV" '
        f'aria-label="Save {escape(name)} as CSV">CSV</button></div>'
    )


def figure(kept: dict[str, str], name: str, svg: str, words: str = "") -> str:
    """A chart with buttons that save it; it is also kept under its name."""
    kept[name] = svg
    told = f"<figcaption>{words}</figcaption>" if words else ""
    buttons = "".join(
        f'<button type="button" data-save="{kind}" aria-label="Save {escape(name)} as {kind}">'
        f"{kind}</button>"
        for kind in ("SVG", "PNG")
    )
    return (
        f'<figure data-name="{escape(name)}"><div class="drawn" tabindex="0" role="group" '
        f'aria-label="{escape(name)}">{svg}</div>{told}<div class="save">{buttons}</div></figure>'
    )


def long_table(name: str, words: str) -> str:
    """The place of a table that the script fills from the data: it sorts, searches and pages."""
    at = escape(name)
    return (
        f'<div class="long" data-long="{at}"><div class="tools"><div class="find">'
        f'<label for="find-{at}">Search</label><input id="find-{at}" type="search" '
        f'placeholder="{escape(words)}"></div><button type="button" data-csv="{at}">CSV</button>'
        f'</div><div class="scroll" tabindex="0" role="region" aria-label="Table of {at}">'
        '<table class="sortable"><thead></thead><tbody></tbody></table></div>'
        '<div class="pager"><button type="button" data-page="-1">Previous</button>'
        '<span aria-live="polite"></span>'
        '<button type="button" data-page="1">Next</button></div></div>'
    )


def p_value(p: float) -> str:
    """A p-value in a sentence.

    Examples
    --------
    >>> p_value(0.0312), p_value(3.4e-7), p_value(0)
    ('p = 0.031', 'p = 3e-7', 'p < 1e-300')
    """
    if p < 1e-300:
        return "p < 1e-300"
    return f"p = {p:.2g}" if p >= 0.001 else f"p = {number(p, 1)}"
