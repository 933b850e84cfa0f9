"""Move views to an accelerator with torch, for ``device="cuda"`` and similar."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.runtime.arrays import Array
from polyspan.runtime.optional import require


def _torch(device: str) -> Any:
    return require("torch", "torch", f"device={device!r}")


def check_device(owner: str, device: str) -> int | None:
    """Refuse a device that is not available; return its free memory in bytes if known.

    Examples
    --------
    >>> import pytest; _ = pytest.importorskip("torch")
    >>> check_device("GRMSC", "cuda:99")
    Traceback (most recent call last):
    ...
    ValueError: GRMSC: device='cuda:99' is not available here (...): use another, or None.
    """
    torch = _torch(device)
    try:
        torch.empty(1, dtype=torch.float64, device=device).cpu()
        return torch.cuda.mem_get_info(device)[0] if torch.device(device).type == "cuda" else None
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        first = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"{owner}: device={device!r} is not available here ({first}): use another, or None."
        ) from error


def card_name(device: str) -> str:
    """Name of the card behind a device, or the device itself if its card has no name."""
    torch = _torch(device)
    return torch.cuda.get_device_name(device) if torch.device(device).type == "cuda" else device


def move_csr(S: sp.csr_array, device: str) -> Any:
    """Move a sparse matrix to a device, where it can be multiplied by dense ones.

    Examples
    --------
    >>> import pytest; torch = pytest.importorskip("torch")
    >>> (move_csr(sp.csr_array(np.eye(2)), "cpu") @ torch.ones(2, 1).double()).ravel().tolist()
    [1.0, 1.0]
    """
    torch = _torch(device)
    parts = [torch.asarray(part) for part in (S.indptr, S.indices, S.data)]
    with warnings.catch_warnings():  # torch calls them a trial
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(*parts, size=S.shape).to(device)


def move_arrays(Xs: list[Array], device: str) -> list[Array]:
    """Move arrays to a device; sparse ones become dense, without their empty columns."""
    torch = _torch(device)
    return [
        torch.asarray(X[:, np.unique(X.indices)].toarray() if sp.issparse(X) else X, device=device)
        for X in Xs
    ]
