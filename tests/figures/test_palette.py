import numpy as np
from matplotlib.colors import to_hex, to_rgb

from polyspan.figures import palette

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


def candidates():
    """Colors (sRGB) of middle lightness, a grid in OKLab; (m, 3) in 0..1."""
    L, C, h = np.meshgrid(
        np.linspace(0.40, 0.84, 12), (0.05, 0.1, 0.15), np.radians(np.arange(0, 360, 12))
    )
    lab = np.stack([L.ravel(), (C * np.cos(h)).ravel(), (C * np.sin(h)).ravel()], axis=1)
    linear = (lab @ np.linalg.inv(LAB).T) ** 3 @ np.linalg.inv(CONES).T
    linear = linear[np.all((linear >= 0) & (linear <= 1), axis=1)]
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def as_seen(srgb):
    """OKLab of colors for three kinds of eyes."""
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    eyes = (linear, linear @ NO_RED.T, linear @ NO_GREEN.T)
    return np.stack([np.cbrt(np.clip(kind, 0, 1) @ CONES.T) @ LAB.T for kind in eyes])


def test_every_color_is_as_far_as_possible_from_those_before_it():
    colors = palette.cluster_colors(6)
    grid = candidates()
    seen, taken = as_seen(grid), as_seen(np.array(list(map(to_rgb, colors))))
    gaps = np.linalg.norm(seen[:, :, None] - taken[:, None], axis=3).min(axis=(0, 2))
    while len(colors) < 100:
        far = int(np.argmax(gaps))
        colors.append(to_hex(grid[far]))
        gaps = np.minimum(gaps, np.linalg.norm(seen - seen[:, far : far + 1], axis=2).min(axis=0))
        gaps[far] = -1
    assert palette.cluster_colors(100) == colors


def test_100_clusters_have_100_colors_for_all_eyes():
    colors = palette.cluster_colors(100)
    assert len(set(colors)) == 100
    seen = as_seen(np.array(list(map(to_rgb, colors))))
    gaps = np.linalg.norm(seen[:, :, None] - seen[:, None], axis=3).min(axis=0)
    gaps[np.diag_indices(100)] = np.inf
    assert gaps[:12, :12].min() > 0.06  # distances in OKLab; .02 is just noticed side by side
    assert gaps.min() > 0.02
    lightness = seen[0, :, 0]
    assert lightness.min() > 0.38  # neither lost on black
    assert lightness.max() < 0.86  # nor on white
    assert len(palette.cluster_colors(1000)) == 1000
