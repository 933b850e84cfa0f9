"""Tensors (m, n, n) that hold one matrix per view: unfoldings, and singular values of slices."""

from array_api_compat import array_namespace

from polyspan.runtime.arrays import Array


def unfold(T: Array, u: int) -> Array:
    """Unfold a tensor (m, n, n): rows side by side (u = 1), columns (2), one row per view (3).

    Examples
    --------
    >>> import numpy as np
    >>> [unfold(np.ones((2, 3, 3)), u).shape for u in (1, 2, 3)]
    [(3, 6), (3, 6), (2, 9)]
    """
    xp = array_namespace(T)
    T = xp.permute_dims(T, {1: (1, 0, 2), 2: (2, 0, 1), 3: (0, 1, 2)}[u])
    return xp.reshape(T, (T.shape[0], -1))


def fold(A: Array, u: int, m: int) -> Array:
    """Inverse of `unfold`."""
    xp = array_namespace(A)
    n = A.shape[0] if u < 3 else round(A.shape[1] ** 0.5)
    T = xp.reshape(A, (n, m, n) if u < 3 else (m, n, n))
    return xp.permute_dims(T, {1: (1, 0, 2), 2: (1, 2, 0), 3: (0, 1, 2)}[u])


def tensor_singular(T: Array, t: float, *, as_released: bool = False) -> Array:
    """Lower the singular values of the slices of a tensor (m, n, n) in the Fourier domain by t.

    The transform runs along axis 1, the slices are m x n: the prox of the mean nuclear norm.
    ``as_released`` lowers those of the highest frequency by 2 t when n is odd.

    Examples
    --------
    >>> import numpy as np
    >>> tensor_singular(np.ones((2, 3, 3)), 1.0)[0].round(6)  # one slice of norm 3 sqrt(6)
    array([[0.863917, 0.863917, 0.863917],
           [0.863917, 0.863917, 0.863917],
           [0.863917, 0.863917, 0.863917]])
    """
    xp = array_namespace(T)
    # T is real, so the other half of the slices is the complex conjugate of this one.
    A = xp.permute_dims(xp.fft.rfft(T, axis=1), (1, 0, 2))
    w, U = xp.linalg.eigh(A @ xp.conj(xp.matrix_transpose(A)))  # m x m each
    s = xp.sqrt(xp.clip(w, min=xp.finfo(w.dtype).smallest_normal))
    lost = t / s
    if as_released and T.shape[1] % 2 and T.shape[1] > 1:
        lost[-1, :] *= 2
    factors = xp.astype(xp.clip(1 - lost, min=0.0), U.dtype)
    A = (U * factors[:, None, :]) @ (xp.conj(xp.matrix_transpose(U)) @ A)
    return xp.fft.irfft(xp.permute_dims(A, (1, 0, 2)), n=T.shape[1], axis=1)
