"""Precomputed input: kernels instead of features, and user-supplied graphs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from polyspan.inputs.scaling import STANDARDIZED
from polyspan.io.align import positions
from polyspan.io.columns import are_numbered, as_ids
from polyspan.io.containers import numbers_of, unmasked
from polyspan.io.safety import check_sparse
from polyspan.io.samples import is_frame, match_kernel
from polyspan.runtime import arrays
from polyspan.runtime.arrays import Array, astype, to_numpy
from polyspan.runtime.messages import plural, view_names, view_title
from polyspan.solvers.eigen import eigh

SYMMETRIC = 1e-8  # of the largest entry: how much two sums in different order may differ


def kernel_features(K: Array, name: str, owner: str) -> tuple[Array, np.ndarray]:
    """Features whose inner products are a kernel, and the map to them for new samples.

    ``K = U diag(w) U^T`` gives ``X = U diag(sqrt w)`` with ``X X^T = K``: distances between rows of
    X are those of the kernel, ``K_ii + K_jj - 2 K_ij``. A new sample with kernel row k has the
    features ``k U diag(1 / sqrt w)``, its part in the span of the fitted samples.

    Parameters
    ----------
    K : (n, n) array
        Symmetric and positive semi-definite.
    name, owner : str
        What to call the view and the method in errors.

    Returns
    -------
    X : (n, r) array
        The features, r the rank of K.
    T : (n, r) NumPy array
        ``k @ T`` are the features of new samples.

    Examples
    --------
    >>> A = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]])
    >>> X, T = kernel_features(A @ A.T, "0", "GRMSC")
    >>> X.shape, np.allclose(X @ X.T, A @ A.T), np.allclose((A @ A.T) @ T, X)
    ((3, 2), True, True)
    """
    n, d = K.shape
    what = f"{owner}: {view_title(name)}"
    if n != d:
        raise ValueError(
            f'{what} is {n} x {d}, but precomputed="kernel" needs a kernel between all samples, '
            f"{n} x {n}."
        )
    K = K.toarray() if sp.issparse(K) else K
    xp = array_namespace(K)
    if bool(xp.any(xp.isnan(K))):
        raise ValueError(
            f"{what} contains NaN, but a kernel must be complete: if samples lack views, give "
            "features instead."
        )
    largest = float(xp.max(xp.abs(K)))
    limit = max(SYMMETRIC, 4 * float(xp.finfo(K.dtype).eps))
    if float(xp.max(xp.abs(K - K.T))) > limit * largest:
        raise ValueError(
            f'{what} is not symmetric, but precomputed="kernel" requires it: K[i, j] and K[j, i] '
            "must be equal."
        )
    w, U = eigh(astype((K + K.T) / 2, "float64"))
    noise = n * float(xp.finfo(K.dtype).eps) * max(float(w[-1]), -float(w[0]))
    if float(w[0]) < -max(noise, limit * largest):
        raise ValueError(
            f'{what} has the negative eigenvalue {float(w[0]):.2g}, but precomputed="kernel" needs '
            "a positive semi-definite kernel: clip its eigenvalues at 0, or give features."
        )
    first = n - int(xp.count_nonzero(w > noise))
    w, U = w[first:], U[:, first:]
    root = xp.sqrt(w)[None, :]
    return astype(U * root, K.dtype), to_numpy(U / root)


def check_kernel_scales(owner: str, params: Mapping[str, Any]) -> None:
    """Refuse to standardize features when only a kernel is given."""
    for name in params.keys() & {"scale", "graph_scale"}:
        value = params[name]
        for scaling in value if isinstance(value, list | tuple) else [value]:
            if scaling in STANDARDIZED:
                raise ValueError(
                    f'{owner}: {name}="{scaling}" standardizes features, but precomputed="kernel" '
                    f'has none: use {name}="unit" or None.'
                )


def check_graphs(
    owner: str,
    graphs: Any,
    names: Sequence[str],
    n: int,
    second_width: str = "own",
    ids: Any = None,
) -> list[sp.csr_array]:
    """Check one n x n graph per view: symmetric, finite, non-negative; the diagonal is dropped.

    Rows and columns of a DataFrame are put in the order of the samples' ``ids``, if these are
    known.

    Examples
    --------
    >>> check_graphs("GRMSC", [np.array([[9.0, 1.0], [1.0, 0.0]])], ["0"], 2)[0].toarray()
    array([[0., 1.],
           [1., 0.]])
    >>> check_graphs("GRMSC", [np.array([[0.0, 1.0], [2.0, 0.0]])], ["0"], 2)
    Traceback (most recent call last):
    ...
    ValueError: GRMSC: the graph of view 0 is not symmetric: A[i, j] and A[j, i] must be equal.
    """
    if second_width == "first":
        raise ValueError(
            f'{owner}: second_width="first" takes the width from graphs built here, but graphs are '
            'given: use second_width="own".'
        )
    if isinstance(graphs, Mapping):
        known = {str(name): graph for name, graph in graphs.items()}
        if set(known) != set(names):
            raise ValueError(
                f"{owner}: graphs has the names {view_names(known)}, but the views are "
                f"{view_names(names)}: give one graph per view."
            )
        graphs = [known[name] for name in names]
    if len(graphs) != len(names):
        raise ValueError(
            f"{owner}: got {plural(len(graphs), 'graph')} for {plural(len(names), 'view')}: give "
            "one graph per view."
        )
    checked = []
    for graph, name in zip(graphs, names, strict=True):
        what = f"{owner}: the graph of {view_title(name)}"
        if tuple(graph.shape) != (n, n):
            size = " x ".join(map(str, graph.shape))
            raise ValueError(f"{what} is {size}: it must be {n} x {n} for {n} samples.")
        graph = _in_order(graph, what, ids) if is_frame(graph) else numbers_of(unmasked(graph))
        Lambda = sp.csr_array(check_sparse(graph, what) if sp.issparse(graph) else to_numpy(graph))
        if Lambda.dtype.kind not in "fiub":
            raise ValueError(f"{what} holds {Lambda.dtype} values: convert them to numbers.")
        Lambda = Lambda.astype(np.float64)
        if not np.isfinite(Lambda.data).all() or (Lambda.data < 0).any():
            raise ValueError(f"{what} has weights that are negative, NaN or infinite: use >= 0.")
        largest = Lambda.data.max(initial=0.0)
        if abs(Lambda - Lambda.T).max() > SYMMETRIC * largest:
            raise ValueError(f"{what} is not symmetric: A[i, j] and A[j, i] must be equal.")
        if largest == 0.0:
            raise ValueError(f"{what} has no edges: leave out the graph and its view.")
        Lambda = sp.csr_array((Lambda + Lambda.T) / 2)
        Lambda = sp.csr_array(Lambda - sp.diags_array(Lambda.diagonal()))
        Lambda.eliminate_zeros()
        checked.append(Lambda)
    return checked


def _in_order(graph: Any, what: str, ids: Any) -> Any:
    """The values of a DataFrame, with the samples in the order of their ids."""
    values, graph_ids = match_kernel(graph.to_numpy(), graph), as_ids(graph.index)
    wanted = graph_ids if ids is None else as_ids(ids)
    if graph_ids == wanted or are_numbered(graph_ids):
        return values
    if len(set(graph_ids)) < len(graph_ids) or set(graph_ids) != set(wanted):
        shared = len(set(graph_ids) & set(wanted))
        raise ValueError(
            f"{what} has {shared} of the {len(wanted)} samples in its index: give it the ids of "
            "the views in index and columns, each once."
        )
    order = positions(graph_ids, wanted)
    return values[np.ix_(order, order)]


def like(Lambda: sp.csr_array, X: Array) -> Array:
    """Convert a graph to a view's dtype, and to its library and device unless that is NumPy.

    Examples
    --------
    >>> like(sp.eye_array(2, format="csr"), np.ones((2, 3), dtype=np.float32)).dtype
    dtype('float32')
    """
    in_numpy = sp.issparse(X) or isinstance(X, np.ndarray)
    return Lambda.astype(X.dtype) if in_numpy else arrays.like(Lambda.toarray(), X)
