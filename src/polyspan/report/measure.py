"""The numbers in the report: views, affinity, map, certainty and agreement of the views."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.metrics import euclidean_distances, normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import randomized_svd

from polyspan.clustering.spectral import EXACT_BELOW, spectral_embedding, unit_rows
from polyspan.explain.statistics import compare_features
from polyspan.inputs.rows import look
from polyspan.inputs.scaling import Scale, Scaling, scale_views
from polyspan.inputs.views import Views
from polyspan.methods.baselines import ConcatSpectral, side_by_side
from polyspan.runtime.arrays import to_numpy
from polyspan.runtime.messages import own_warnings

MOST_COMPARED = 2000  # samples used to compare the views
MOST_AXES = 6  # axes that the map can show
MOST_VALUES = 10_000_000  # in all views together, for exact principal axes
MOST_VECTORS = 32  # eigenvectors behind the map: more do not change its first axes


class ViewSummary(NamedTuple):
    """One view in numbers; they are NaN where there are no values."""

    n_features: int
    zeros: float  # share of all values
    missing: int  # values that are NaN or infinite
    missing_samples: int  # samples without any value
    smallest: float
    largest: float
    typical: float  # median absolute value of what is not zero
    spread: tuple[float, float]  # smallest and largest standard deviation of a feature
    constant: int  # features with the same value throughout
    storage: str


def summarize_view(X: Any) -> ViewSummary:
    """Count and measure the values of one view.

    Examples
    --------
    >>> summarize_view(np.array([[0.0, 2.0], [np.nan, -4.0]]))[:7]
    (2, 0.25, 1, 0, -4.0, 2.0, 3.0)
    """
    n, d = X.shape
    sparse = sp.issparse(X)
    X = sp.csc_array(X) if sparse else to_numpy(X)
    stored = X.data if sparse else X
    kind = stored.dtype.name
    stored = stored.astype(np.float64, copy=False)
    finite = np.isfinite(stored)
    known = np.where(finite, stored, 0)  # missing values add nothing to sums
    unequal = known[finite & (known != 0)]
    missing = int(finite.size - finite.sum())
    gaps = np.where(finite, stored, np.nan)
    if sparse:
        gaps = sp.csc_array((gaps, X.indices, X.indptr), shape=(n, d))
    varied = StandardScaler(with_mean=not sparse).fit(gaps)
    spread = np.sqrt(np.nan_to_num(varied.var_))
    spread[spread <= 1e-13 * np.abs(varied.mean_)] = 0  # only rounding errors
    gone = np.bincount(X.indices[~finite], minlength=n) == d if sparse else ~finite.any(axis=1)
    n_zero = n * d - missing - unequal.size
    ends = [unequal.min(), unequal.max()] if unequal.size else []
    ends += [0.0] if n_zero else []
    return ViewSummary(
        n_features=d, zeros=n_zero / (n * d), missing=missing, missing_samples=int(gone.sum()),
        smallest=float(min(ends, default=np.nan)), largest=float(max(ends, default=np.nan)),
        typical=float(np.median(np.abs(unequal))) if unequal.size else float("nan"),
        spread=(float(spread.min()), float(spread.max())), constant=int((spread == 0).sum()),
        storage=f"{'sparse' if sparse else 'dense'} {kind}",
    )  # fmt: skip


class Affinity(NamedTuple):
    """The affinity summed over clusters, without the affinity of samples with themselves."""

    own: np.ndarray  # (n,) share of a sample's affinity that goes to its own cluster
    second: np.ndarray  # (n,) the other cluster with most of it; -1 if no other has any
    between: np.ndarray  # (c, c) mean affinity of a pair of samples from these clusters


def measure_affinity(W: Any, codes: np.ndarray, n_clusters: int) -> Affinity:
    """Sum the affinity of every sample over the clusters.

    Examples
    --------
    >>> W = np.array([[9.0, 3, 1], [3, 9, 0], [1, 0, 9]])
    >>> found = measure_affinity(W, np.array([0, 0, 1]), 2)
    >>> found.own, found.second
    (array([0.75, 1.  , 0.  ]), array([ 1, -1,  0]))
    """
    n = len(codes)
    members = sp.csr_array((np.ones(n), (np.arange(n), codes)), shape=(n, n_clusters))
    sums = to_numpy((W @ members).toarray() if sp.issparse(W) else W @ members.toarray())
    rows = np.arange(n)
    sums[rows, codes] -= np.asarray(W.diagonal())
    sums = np.maximum(sums, 0)  # the subtraction may leave a rounding error
    total = sums.sum(axis=1)
    own = sums[rows, codes] / np.where(total > 0, total, 1)
    pairs = members.T @ sums
    sizes = np.bincount(codes, minlength=n_clusters)
    count = np.outer(sizes, sizes) - np.diag(sizes)
    others = sums.copy()
    others[rows, codes] = 0
    second = np.where(others.max(axis=1) > 0, others.argmax(axis=1), -1)
    return Affinity(own, second, pairs / np.maximum(count, 1))


class Map(NamedTuple):
    """Coordinates of the samples."""

    axes: np.ndarray  # (n, at most 6)
    shares: np.ndarray  # of the variance, one per axis
    spectral: bool  # from the affinity; otherwise from the views


def draw_map(W: Any, views: list[Any], n_clusters: int, scale: Scale) -> Map:
    """Principal axes of the spectral embedding; of the scaled views when there is no affinity."""
    n = views[0].shape[0]
    if W is not None:
        Y: Any = _embedding(W, min(n, max(3, min(n_clusters, MOST_VECTORS))))
    else:
        Y = _joined(views, scale)
    wanted = min(MOST_AXES, *Y.shape)
    if sp.issparse(Y) and wanted < min(Y.shape):
        model = PCA(wanted, svd_solver="arpack", random_state=0)
    elif Y.size > MOST_VALUES and not sp.issparse(Y):  # exact axes would take minutes
        model = PCA(wanted, svd_solver="randomized", random_state=0)
    else:
        Y = Y.toarray() if sp.issparse(Y) else Y
        model = PCA(wanted, svd_solver="full")
    with np.errstate(invalid="ignore"):  # all samples in one place: no variance to divide by
        axes = model.fit_transform(Y.astype(np.float64))
    shares = np.nan_to_num(model.explained_variance_ratio_)
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    axes = axes * np.where(largest < 0, -1.0, 1.0)  # signs are arbitrary: fix them
    real = max(2, int(np.sum(shares > 1e-9)))
    axes = np.pad(axes, ((0, 0), (0, max(0, 2 - axes.shape[1]))))
    shares = np.pad(shares, (0, max(0, 2 - len(shares))))
    return Map(axes[:, :real], shares[:real], W is not None)


def _embedding(W: Any, n_vectors: int) -> np.ndarray:
    """Spectral embedding; with many samples, accurate enough for a drawing, in a bounded time.

    Graphs of long chains and of many pieces have eigenvalues that no Lanczos iteration separates
    in reasonable time. A drawing does not need them separated, so a fixed number of power steps
    on a random block is used instead.
    """
    if W.shape[0] <= EXACT_BELOW:
        return spectral_embedding(W, n_vectors)
    degrees = np.asarray(W.sum(axis=1)).ravel()
    root = 1 / np.sqrt(np.where(degrees > 0, degrees, 1))
    half = sp.diags_array(root)
    N = half @ W @ half if sp.issparse(W) else root[:, None] * W * root
    start = np.random.RandomState(0).uniform(size=len(root)).astype(N.dtype)
    try:
        Y = eigsh(N, n_vectors, which="LA", v0=start, tol=1e-4, maxiter=60)[1]
    except ArpackNoConvergence:
        # N + 1 has the same vectors and no negative eigenvalues, so its largest are N's.
        shifted = N + sp.eye_array(len(root)) if sp.issparse(N) else N + np.eye(len(root))
        Y = randomized_svd(shifted, n_vectors, n_iter=30, random_state=0)[0]
    return unit_rows(np.where(degrees[:, None] > 0, Y, 0))


def _joined(views: list[Any], scale: Scale) -> Any:
    """Scaled views side by side; missing values are the feature's mean, or 0 if sparse."""
    filled = []
    for view in views:
        if sp.issparse(view):
            X = sp.csr_array(view, copy=True)
            X.data[~np.isfinite(X.data)] = 0
        else:
            X = to_numpy(view).astype(np.float64)
            X = np.where(np.isfinite(X), X, np.nan)
            X = SimpleImputer(keep_empty_features=True).fit_transform(X)
        filled.append(X)
    names = [str(k) for k in range(len(views))]
    return side_by_side(scale_views(Views(filled, names), scale))


def center_margin(views: list[Any], codes: np.ndarray, scale: Scale) -> np.ndarray:
    """How much nearer a sample is to its own cluster's center than to the next: 1 - own / next."""
    X = _joined(views, scale)
    n, c = X.shape[0], int(codes.max()) + 1
    if c == 1:
        return np.ones(n)
    members = sp.csr_array((np.ones(n), (codes, np.arange(n))), shape=(c, n))
    centers = members @ X
    centers = centers.toarray() if sp.issparse(centers) else centers
    centers = centers / np.bincount(codes, minlength=c)[:, None]
    D = euclidean_distances(X, centers)
    rows = np.arange(n)
    own = D[rows, codes].copy()
    D[rows, codes] = np.inf
    return np.clip(1 - own / np.maximum(D.min(axis=1), np.finfo(float).tiny), 0, 1)


class Agreement(NamedTuple):
    """How well the clusters of one view alone agree with the result."""

    nmi: float | None  # with the result; None when the view could not be clustered
    near: np.ndarray | None  # (c,) how well the neighbors in the view tell a cluster, 0.5 to 1
    n_used: int
    why: str  # why there is no nmi


def compare_view(X: Any, codes: np.ndarray, scale: Scaling) -> Agreement:
    """Cluster one view alone by the k-NN baseline and compare with the result.

    Samples that lack the view are left out; with more than 2,000, a random part is used.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [1.0, 0.1], [0.9, 0.1], [0.0, 1.0], [0.1, 1.0], [0.1, 0.9]])
    >>> compare_view(X, np.array([0, 0, 0, 1, 1, 1]), "unit").nmi
    1.0
    """
    c = int(codes.max()) + 1
    if c == 1:
        return Agreement(None, None, 0, "one cluster: nothing to compare")
    X = sp.csr_array(X) if sp.issparse(X) else to_numpy(X)
    rows = np.flatnonzero(~look(X).bad)
    if len(rows) > MOST_COMPARED:
        chosen = np.random.default_rng(0).choice(len(rows), MOST_COMPARED, replace=False)
        rows = rows[np.sort(chosen)]
    here = codes[rows]
    k = len(np.unique(here))
    if len(rows) < 3 or k < 2:
        return Agreement(None, None, len(rows), "too few complete samples")
    model = ConcatSpectral(k, scale=scale, n_init=5, random_state=0)
    try:
        with own_warnings():
            warnings.simplefilter("ignore")  # the fit has already issued them
            model.fit([X[rows]])
    except ValueError as error:
        return Agreement(None, None, len(rows), str(error))
    found = normalized_mutual_info_score(here, model.labels_)
    return Agreement(float(found), _near(model.affinity_matrix_, here, c), len(rows), "")


def _near(W: Any, codes: np.ndarray, c: int) -> np.ndarray:
    """How well the share of a sample's neighbors in a cluster tells whether it belongs there.

    This is an AUC, which does not depend on the size of the cluster.
    """
    W = sp.csr_array(W)
    W = W - sp.diags_array(W.diagonal())
    members = sp.csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)),
                           shape=(len(codes), c))  # fmt: skip
    inside = (W @ members).toarray()
    share = inside / np.maximum(inside.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    near = compare_features(share, codes, c).auc[np.arange(c), np.arange(c)]
    return np.where(np.bincount(codes, minlength=c) > 0, near, np.nan)
