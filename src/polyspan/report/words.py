"""Numbers and settings in words for people; the filters of the templates."""

import base64
import math
import platform
import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from polyspan import __version__
from polyspan.figures.files import clean
from polyspan.runtime.messages import plural


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
        text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(size)))}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "\u2212", 1) if value < 0 else text


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


def setting(value: Any) -> str:
    """A parameter's value in short, without memory addresses, which change from run to run.

    Examples
    --------
    >>> setting(0.001), setting("unit"), setting(np.random.RandomState(0))
    ('0.001', "'unit'", 'RandomState(MT19937)')
    """
    if isinstance(value, Mapping):
        text = ", ".join(f"{name}={setting(part)}" for name, part in value.items())
    else:
        text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    text = without_addresses(text)
    return text if len(text) <= 300 else text[:297] + "..."


def without_addresses(text: str) -> str:
    """What Python prints of a value, without its place in memory, which changes every time."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", text)


def packed(values: np.ndarray, kind: str) -> str:
    """Numbers as base64 of little-endian integers."""
    numbers = np.asarray(values).astype(np.dtype(kind).newbyteorder("<"))
    return base64.b64encode(numbers.tobytes()).decode()


def is_known(value: Any) -> bool:
    """Whether there is a value, and no NaN or infinity."""
    return value is not None and (isinstance(value, str) or math.isfinite(value))


@cache
def environment() -> Environment:
    """The templates: what comes from outside is escaped, and what no page can hold replaced."""
    found = Environment(
        loader=PackageLoader("polyspan.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else clean(value),
    )  # fmt: skip
    found.filters |= {
        "number": number, "percent": percent, "p_value": p_value, "plural": plural,
        "setting": setting, "one_line": lambda text: Markup(" ".join(text.split())),
    }  # fmt: skip
    found.tests["known"] = is_known
    found.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    found.globals |= {
        "heads_of": lambda words, names: [(words, name) for name in names],
        "version": __version__, "version_of": metadata.version,
        "python_version": platform.python_version(),
    }  # fmt: skip
    return found
