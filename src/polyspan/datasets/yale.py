"""Three views of the Yale face images: intensity, local binary patterns, Gabor magnitudes."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from polyspan.runtime.optional import require

SIDE = 64  # the images are 64 x 64
LBP_GRID = (7, 8)  # cells down and across; 56 cells x 59 patterns = 3304, as in the published file
LBP_PATTERNS = 59  # uniform patterns of 8 neighbors, direction kept
GABOR_WAVELENGTHS = (4.0, 8.0)  # pixels
GABOR_ANGLES = (0.0, 45.0, 90.0, 135.0)  # degrees
GABOR_STEP = 4  # magnitudes are averaged over 4 x 4 pixels: 8 filters x 16 x 16 = 2048


def yale_views(pixels: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Intensity, LBP and Gabor views of the images in the Yale file.

    The papers' features were published only as numbers, never with the code that computed them;
    these have the same meaning and, for LBP, the same length, but not the same values.

    Parameters
    ----------
    pixels : (n_samples, 4096) array
        Gray values 0 to 255, each row an image read column by column (as MATLAB does).

    Returns
    -------
    list of arrays
        Intensity (4096: pixel / 255); LBP (3304: share of each of the 59 uniform patterns of
        8 neighbors at radius 1, in each of 7 x 8 cells); Gabor (2048: magnitudes at wavelengths
        4 and 8 and four angles, averaged over 4 x 4 pixels).
    """
    if pixels.shape[1] != SIDE * SIDE:
        raise ValueError(f"its images have {pixels.shape[1]} pixels, expected {SIDE * SIDE}")
    images = pixels.reshape(-1, SIDE, SIDE).transpose(0, 2, 1)
    return [pixels / 255, _binary_patterns(images), _gabor_magnitudes(images / 255)]


def _binary_patterns(images: NDArray[np.float64]) -> NDArray[np.float64]:
    feature = require("skimage.feature", "images", "the views of yale_images")
    rows, columns = (np.linspace(0, SIDE, cells + 1).astype(int) for cells in LBP_GRID)
    views = []
    for image in images.astype(np.uint8):  # floats could differ in the last bit, and ties matter
        # Mirror the borders: scikit-image assumes black outside, which would look like an edge.
        framed = np.pad(image, 1, mode="symmetric")
        codes = feature.local_binary_pattern(framed, P=8, R=1, method="nri_uniform")
        codes = codes[1:-1, 1:-1].astype(int)
        cells = [
            codes[top:bottom, left:right].ravel()
            for top, bottom in pairwise(rows)
            for left, right in pairwise(columns)
        ]
        views.append(
            np.concatenate([np.bincount(c, minlength=LBP_PATTERNS) / c.size for c in cells])
        )
    return np.array(views)


def _gabor_magnitudes(images: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.signal import fftconvolve

    filters = require("skimage.filters", "images", "the views of yale_images")
    small = SIDE // GABOR_STEP
    maps = []
    for wavelength in GABOR_WAVELENGTHS:
        for angle in GABOR_ANGLES:
            kernel = filters.gabor_kernel(1 / wavelength, theta=np.deg2rad(angle))
            kernel = kernel - kernel.mean()  # so that a uniform patch gives no response
            down, across = (size // 2 for size in kernel.shape)
            framed = np.pad(images, ((0, 0), (down, down), (across, across)), mode="symmetric")
            response = np.abs(fftconvolve(framed, kernel[None], mode="valid", axes=(1, 2)))
            blocks = response.reshape(len(images), small, GABOR_STEP, small, GABOR_STEP)
            maps.append(blocks.mean(axis=(2, 4)).reshape(len(images), -1))
    return np.hstack(maps)
