"""A real multi-view data set that needs no download: scikit-learn's bundled digits."""

import numpy as np
from numpy.typing import NDArray

from polyspan.io.dataset import Dataset

N_BINS = 8  # directions of the gradient histogram
CELL = 4  # side of a cell in pixels: 2 x 2 cells in an 8 x 8 image


def load_digits_views(n_samples: int | None = None, random_state: int | None = 0) -> Dataset:
    """Three views of the 1797 handwritten digits (8 x 8 pixels) bundled with scikit-learn.

    ========== ======== ==========================================================================
    view       features what it shows
    ========== ======== ==========================================================================
    pixels     64       gray values from 0 to 1: where the ink is
    fourier    40       magnitudes of the two-dimensional Fourier transform (one half-plane): which
                        strokes and widths occur, wherever they are
    gradients  32       histogram of the edge directions (8 directions, 2 x 2 cells, weighted by
                        edge strength): how the outline runs, roughly where
    ========== ======== ==========================================================================

    Parameters
    ----------
    n_samples : int, optional
        Size of a random subset with the same number of samples of each digit (up to a difference
        of one, as long as there are enough); all 1797 when None.
    random_state : int or None, default=0
        Seed for drawing the subset.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from polyspan.datasets import load_digits_views
    >>> load_digits_views(n_samples=600)
    Dataset('digits': 600 samples, 3 views (pixels 64, fourier 40, gradients 32), 10 clusters)
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8) / 16  # gray values are 0..16
    if n_samples is not None:
        rows = _balanced_subset(labels, n_samples, random_state)
        images, labels = images[rows], labels[rows]
    views = [images.reshape(len(images), -1), fourier_magnitudes(images), edge_directions(images)]
    return Dataset(
        "digits", views, labels.astype(np.int64), ["pixels", "fourier", "gradients"], n_clusters=10
    )


def fourier_magnitudes(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Magnitudes of the Fourier transform of each image; shifting the ink hardly changes them."""
    return np.abs(np.fft.rfft2(images)).reshape(len(images), -1)


def edge_directions(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Histogram, per cell, of edge directions modulo 180 degrees, weighted by edge strength."""
    n, height, width = images.shape
    down, right = np.gradient(images, axis=(1, 2))
    strength = np.hypot(down, right)
    position = np.mod(np.arctan2(down, right), np.pi) / np.pi * N_BINS
    lower = np.floor(position).astype(int)
    share = position - lower
    # Each pixel is split between its two nearest bins, so that a small rotation is a small change.
    votes = np.zeros((*images.shape, N_BINS))
    pixel = np.indices(images.shape)
    votes[(*pixel, lower % N_BINS)] += strength * (1 - share)
    votes[(*pixel, (lower + 1) % N_BINS)] += strength * share
    cells = votes.reshape(n, height // CELL, CELL, width // CELL, CELL, N_BINS).sum(axis=(2, 4))
    return cells.reshape(n, -1)


def _balanced_subset(
    labels: NDArray[np.int64], n_samples: int, random_state: int | None
) -> NDArray[np.int64]:
    n_classes = len(np.unique(labels))
    if not n_classes <= n_samples <= len(labels):
        raise ValueError(
            f"n_samples must be from {n_classes} (one of each digit) to {len(labels)}, "
            f"got {n_samples}"
        )
    order = np.random.default_rng(random_state).permutation(len(labels))
    place = np.empty(len(labels), dtype=np.int64)  # position within its class, in random order
    for c in range(n_classes):
        members = order[labels[order] == c]
        place[members] = np.arange(len(members))
    return np.sort(order[np.argsort(place[order], kind="stable")[:n_samples]])
