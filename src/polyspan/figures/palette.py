"""Colors of clusters that as many readers as possible can tell apart, on white and on black."""

from functools import cache
from typing import Any

import numpy as np
from matplotlib.colors import to_hex, to_rgb

INK, FAINT, EDGE = "#1b2a41", "#8a94a3", "#c8cfd8"
LINES = ("#1f6fb4", "#d9731a", "#3a8f5c", "#8a5fb0")  # color-blind safe
SHADES = ("#ffffff", "#d6e5f4", "#8fc0e0", "#3d8ac2", "#0b4f8f", "#082f5c")  # of a matrix
HEAT = ("#2b5c9e", "#8fb8de", "#f4f4f2", "#eca57a", "#b5401b")  # less, mean, more

# Okabe and Ito's colors without black and yellow, which vanish on one of the two backgrounds.
FIRST = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
MOST = 300

# Linear sRGB as seen with no red and with no green cones (Machado, Oliveira and Fernandes 2009).
NO_RED = np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]])  # fmt: skip
NO_GREEN = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]])  # fmt: skip
# OKLab (Ottosson 2020): Euclidean distances in it are close to perceived differences.
CONES = np.array([[0.4122214708, 0.5363325363, 0.0514459929],
                  [0.2119034982, 0.6806995451, 0.1073969566],
                  [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
LAB = np.array([[0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip


def cluster_colors(n_clusters: int) -> list[str]:
    """Colors for clusters 0, 1, ...: six fixed ones, then each as far as possible from the others.

    Distances count for normal and for red- and green-blind eyes alike. After 300 colors they
    repeat.

    Examples
    --------
    >>> cluster_colors(3)
    ['#0072b2', '#e69f00', '#009e73']
    """
    colors = _ranked()
    return [colors[k % len(colors)] for k in range(n_clusters)]


@cache
def _ranked() -> list[str]:
    """All colors, each as far as possible from those before it."""
    candidates = _candidates()
    seen = as_seen(candidates)  # (kinds of eyes, colors, 3)
    taken = as_seen(np.array([to_rgb(color) for color in FIRST]))
    gaps = np.linalg.norm(seen[:, :, None] - taken[:, None], axis=3).min(axis=(0, 2))
    colors = list(FIRST)
    while len(colors) < MOST:
        far = int(np.argmax(gaps))
        colors.append(to_hex(candidates[far]))
        gaps = np.minimum(gaps, np.linalg.norm(seen - seen[:, far : far + 1], axis=2).min(axis=0))
        gaps[far] = -1
    return colors


def _candidates() -> np.ndarray:
    """Colors (sRGB) of middle lightness, a grid in OKLab; (m, 3) in 0..1."""
    L, C, h = np.meshgrid(
        np.linspace(0.40, 0.84, 12), (0.05, 0.1, 0.15), np.radians(np.arange(0, 360, 12))
    )
    lab = np.stack([L.ravel(), (C * np.cos(h)).ravel(), (C * np.sin(h)).ravel()], axis=1)
    linear = (lab @ np.linalg.inv(LAB).T) ** 3 @ np.linalg.inv(CONES).T
    linear = linear[np.all((linear >= 0) & (linear <= 1), axis=1)]
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def as_seen(srgb: np.ndarray) -> np.ndarray:
    """OKLab of colors for three kinds of eyes."""
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    eyes = (linear, linear @ NO_RED.T, linear @ NO_GREEN.T)
    return np.stack([np.cbrt(np.clip(kind, 0, 1) @ CONES.T) @ LAB.T for kind in eyes])


def clusters_of(labels: Any, names: Any = None) -> tuple[np.ndarray, list[str], list[str]]:
    """The place of every sample's cluster, and the clusters' names and colors.

    Examples
    --------
    >>> codes, names, colors = clusters_of(["b", "a", "b"])
    >>> codes.tolist(), names, colors
    ([1, 0, 1], ['a', 'b'], ['#0072b2', '#e69f00'])
    """
    clusters, codes = np.unique(np.asarray(labels), return_inverse=True)
    names = [str(name) for name in (clusters.tolist() if names is None else names)]
    return codes, names, cluster_colors(len(names))


def short(name: Any, most: int = 28) -> str:
    r"""Text that fits beside a figure, as matplotlib shows it: a dollar begins no formula.

    Examples
    --------
    >>> short("C18.3n.3"), short("a very long name", 8), short("$a$")
    ('C18.3n.3', 'a very…', '\\$a\\$')
    """
    text = "".join(letter if letter.isprintable() else " " for letter in str(name)).strip()
    text = text if len(text) <= most else text[: most - 1].rstrip() + "\u2026"
    return text.replace("$", r"\$")
