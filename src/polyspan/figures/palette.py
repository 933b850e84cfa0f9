"""Colors of clusters that as many readers as possible can tell apart, on white and on black."""

from typing import Any

import numpy as np

INK, FAINT, EDGE = "#1b2a41", "#8a94a3", "#c8cfd8"
LINES = ("#1f6fb4", "#d9731a", "#3a8f5c", "#8a5fb0")  # color-blind safe
SHADES = ("#ffffff", "#d6e5f4", "#8fc0e0", "#3d8ac2", "#0b4f8f", "#082f5c")  # of a matrix
HEAT = ("#2b5c9e", "#8fb8de", "#f4f4f2", "#eca57a", "#b5401b")  # less, mean, more

# Okabe and Ito's colors without black and yellow, which vanish on one of the two backgrounds; then
# each as far as possible from those before it, for normal and for red- and green-blind eyes alike
# (tests/figures/test_palette.py finds them).
COLORS = """
0072b2 e69f00 009e73 cc79a7 56b4e9 d55e00 86111b 85e0be 5a366e 457270 ae4022 5d88e7 80d8fe
264ba4 a6df74 8ac288 684757 58c5c1 704c86 2eb370 3b865b 3d9640 4ba4c9 216e45 617fbc a66897
c2989c 8dc45a 603d3a f5b2e3 6e328d 932601 f8a49e b85207 1aa2eb e8c944 48b7c1 a84d95 4e94c3
9e9d50 6dd3c0 689694 acb8fe 6c546e 466fcb 517cd9 098777 2e7a50 a03313 593d52 65407a 674c36
3b63be 65d1db 622680 5a6986 64bc65 d4cba6 3057b1 6bc6a5 b5c87d 2f8a34 dd9314 a3856e dbbc33
51ac8c 946eab 27709c 30aff8 8f96b8 ba99b1 99523f 574c6a d26088 76525c dc8b86 4f5795 b46763
59b1d6 239382 b97d4a 9e51a5 da7e1e 594329 aa77af 81b84d 8ae48a 464361 3b5b47 a5c8b0 17eace
b74771 a1b1d2 7997d6 f59740 759958 942126 99d267 73baea c9593b
"""


def cluster_colors(n_clusters: int) -> list[str]:
    """Colors for clusters 0, 1, ... that as many eyes as possible tell apart; after 100, again.

    Examples
    --------
    >>> cluster_colors(3)
    ['#0072b2', '#e69f00', '#009e73']
    """
    colors = COLORS.split()
    return [f"#{colors[k % len(colors)]}" for k in range(n_clusters)]


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
