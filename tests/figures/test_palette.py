import numpy as np

from polyspan.figures import palette


def test_100_clusters_have_100_colors_for_all_eyes():
    colors = palette.cluster_colors(100)
    assert len(set(colors)) == 100
    srgb = np.array([[int(c[k : k + 2], 16) / 255 for k in (1, 3, 5)] for c in colors])
    seen = palette.as_seen(srgb)
    gaps = np.linalg.norm(seen[:, :, None] - seen[:, None], axis=3).min(axis=0)
    gaps[np.diag_indices(100)] = np.inf
    assert gaps[:12, :12].min() > 0.06  # distances in OKLab; .02 is just noticed side by side
    assert gaps.min() > 0.02
    lightness = seen[0, :, 0]
    assert lightness.min() > 0.38  # neither lost on black
    assert lightness.max() < 0.86  # nor on white
    assert len(palette.cluster_colors(1000)) == 1000
