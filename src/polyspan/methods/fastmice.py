"""FastMICE: fast multi-view clustering via ensembles.

Every member of the ensemble is a clustering of its own view group: a random number of views, drawn
at random, with a random 20 to 80 % of the features of each. A group of g views has m/g anchors and
k/g nearest anchors per view, rounded up::

    b_ij = exp(-d_ij^2 / (2 s^2))  from sample i to its nearest anchors j, 0 to the others

where s is the mean of these distances in the view; the links of a sample in a view are scaled to
length 1, and anchors tied for the last place share it. The links B (n x m) of all views of the
group are cut into a random number of clusters, from c to 2c, by the transfer cut: with D_x and D_y
the row and column sums::

    W_y = B^T D_x^-1 B,   the leading eigenvectors Y of D_y^-1/2 W_y D_y^-1/2
    U   = D_x^-1 B D_y^-1/2 Y                                                            (1)

and k-means on the rows of U, at unit length. The consensus is the transfer cut, into c clusters, of
the graph that links every sample to its cluster in each member. All steps are linear in n.

Anchors are the centers of k-means, five iterations, on ten times as many random samples; if there
are as many anchors as samples, they are the samples, and in a sparse view too wide for dense
centers, random samples. The nearest anchors are found exactly; the authors' program looks for them
in the surroundings of the nearest one. The k-means of its members starts at random samples, ours
at k-means++.

Reference: D. Huang, C.-D. Wang, J.-H. Lai, "Fast multi-view clustering via ensembles: towards
scalability, superiority, and simplicity", IEEE Transactions on Knowledge and Data Engineering 35
(2023). Anchors and cut are those of U-SPEC, by D. Huang et al., in the same journal 32 (2020).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from polyspan.base import About, Embedding, InNumPy
from polyspan.clustering.spectral import quiet_kmeans, spectral_eigenvectors, unit_rows
from polyspan.graphs.ties import distances, lowest, squared_lengths, tied
from polyspan.inputs.params import Neighbors, fitted, integer, param
from polyspan.inputs.scaling import unit
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array

SHARE = (0.2, 0.8)  # of the features of a view
CANDIDATES = 10  # samples per anchor that choose the anchors
ITERATIONS = 5  # of the k-means of anchors and of members
BLOCK = 2**22  # distances held at a time: 32 MB
WIDE = 2**26  # numbers in the centers of a sparse view: 512 MB


class FastMICE(InNumPy):
    """Consensus of clusterings of random groups of views and features, linear in n.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_members : int, default=20
        Clusterings in the ensemble, M in the paper.
    n_anchors : int or None, default=None
        Anchors of a view group, p in the paper; None is 1,000. There are n at most.
    n_neighbors : int or None, default=None
        Nearest anchors to which a sample is linked in a view group, K in the paper; None is
        min(5, n - 1).
    scale : {"unit", "standard+unit", None}, default="unit"
        Scaling of samples to unit length, after standardizing features if asked; in every member
        again, for the features that it has. The authors take the features as they are, and cosines
        for text.
    n_init : int, default=20
        Restarts of the k-means that gives the labels; those of the members start once.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views.
    random_state : int, RandomState or None, default=None
        Seeds everything that is drawn.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    members_ : (n, n_members) array
        Cluster of every sample in each member of the ensemble.
    embedding_ : (n, n_clusters) array
        U of the consensus, what was clustered at unit length.

    Examples
    --------
    >>> from polyspan import FastMICE
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> FastMICE(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Huang et al., TKDE 2023, arXiv:2203.11572",
        objective="transfer cut of the clusters of random view groups, themselves transfer cuts",
        needs="scale",
        cost="O(n m d) per member; no n x n matrix",
    )
    family = "ensemble"
    draws = True  # groups and anchors

    n_members: int = param(integer(1), default=20)
    n_anchors: int | None = param(integer(1, none="1000, at most n"), default=None)
    n_neighbors: int | None = param(Neighbors(5), default=None)

    embedding_: np.ndarray = fitted()
    members_: np.ndarray = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Embedding:
        """Return U of the consensus, and the members beside it."""
        rng, n, c = check_random_state(self.random_state), views.n_samples, self.n_clusters
        by_angle = [(scale or "").endswith("unit") for scale in self._scalings(views)]
        m, k = min(self.n_anchors or 1000, n), self._neighbors(n)
        members = np.empty((n, self.n_members), dtype=np.int32)
        for number in range(self.n_members):
            B = group_links(Xs, m, k, rng, by_angle)
            count = min(rng.randint(c, 2 * c + 1), n)
            model = KMeans(count, n_init=1, max_iter=ITERATIONS, random_state=rng.randint(2**31))
            with quiet_kmeans():
                members[:, number] = model.fit_predict(unit_rows(transfer_cut(B, count)))
        U = transfer_cut(indicators(members), c)
        return Embedding(U, extras={"members_": members}, random_state=rng.randint(2**31))

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count numbers per sample: features, links, members, embeddings."""
        links = self._neighbors(views.n_samples) + len(views.arrays) + self.n_members
        return 0.0, 2 * sum(views.widths) + 6 * links + 8 * self.n_clusters


def group_links(
    Xs: list[Any], m: int, k: int, rng: np.random.RandomState, by_angle: Sequence[bool]
) -> sp.csr_array:
    """Draw a view group, and link the samples to its anchors: n x m, or a few columns more.

    Views compared ``by_angle`` have samples of unit length in the features that were drawn.

    Examples
    --------
    >>> Xs = [np.eye(6), np.eye(6)[:, ::-1]]
    >>> group_links(Xs, 4, 2, np.random.RandomState(0), [True, False]).shape
    (6, 4)
    """
    g = rng.randint(1, len(Xs) + 1)
    parts = []
    for v in rng.choice(len(Xs), g, replace=False):
        d = Xs[v].shape[1]
        some = rng.choice(d, int(np.ceil(rng.uniform(*SHARE) * d)), replace=False)
        X = Xs[v][:, np.sort(some)]
        X = unit(X) if by_angle[v] else X
        A = anchors(X, -(-m // g), rng)
        parts.append(links(X, A, min(-(-k // g), A.shape[0])))
    return sp.csr_array(sp.hstack(parts))


def anchors(X: Any, m: int, rng: np.random.RandomState) -> Any:
    """Centers of k-means of some samples, as rows; all samples, if there are no more than m."""
    n = X.shape[0]
    if m >= n:
        return X
    wide = sp.issparse(X) and m * X.shape[1] > WIDE
    X = X[np.sort(rng.choice(n, m if wide else min(CANDIDATES * m, n), replace=False))]
    if wide:
        return X
    once: dict[str, Any] = {"init": "random", "n_init": 1, "max_iter": ITERATIONS}
    model = KMeans(m, random_state=rng.randint(2**31), **once)
    with quiet_kmeans():
        return model.fit(X).cluster_centers_


def links(X: Any, A: Any, k: int) -> sp.csr_array:
    """Similarities of samples to their k nearest anchors, rows of length 1.

    Examples
    --------
    >>> links(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0], [9.0]]), 2).toarray().round(3)
    array([[0.991, 0.134, 0.   ],
           [0.134, 0.991, 0.   ]])
    """
    n, m = X.shape[0], A.shape[0]
    x, a = squared_lengths(X), squared_lengths(A)
    step, parts = max(1, BLOCK // m), []
    for rows in (slice(start, start + step) for start in range(0, n, step)):
        G = distances(X[rows], A, x[rows], a)
        i, *near, _ = lowest(G, x[rows], k, tied(X.dtype))
        parts.append((i + rows.start, *near))
    i, j, D2, shares = (np.concatenate(several) for several in zip(*parts, strict=True))
    s2 = np.average(np.sqrt(D2), weights=shares) ** 2
    nearest = np.minimum.reduceat(D2, np.searchsorted(i, np.arange(n)))
    near = np.exp((nearest[i] - D2) / (2 * (s2 or 1.0)))  # 1 for the nearest: no row is all zero
    B = sp.csr_array((shares * near, (i, j)), shape=(n, m))
    return sp.csr_array(sp.diags_array(1 / np.sqrt(B.multiply(B).sum(axis=1))) @ B)


def transfer_cut(B: sp.csr_array, c: int) -> np.ndarray:
    """Rows U of the samples in the c leading eigenvectors of a bipartite graph, eq. (1).

    Examples
    --------
    >>> U = transfer_cut(sp.csr_array(np.kron(np.eye(2), np.ones((3, 2)))), 2)
    >>> int(np.linalg.matrix_rank(U)), np.allclose(U[0], U[1]), np.allclose(U[0], U[3])
    (2, True, False)
    """
    T = sp.diags_array(1 / B.sum(axis=1)) @ B
    _, Y, degrees = spectral_eigenvectors((B.T @ T).toarray(), min(c, B.shape[1]))
    U = np.zeros((B.shape[0], c))
    U[:, : Y.shape[1]] = T @ (Y / np.sqrt(np.where(degrees > 0, degrees, 1))[:, None])
    return U


def indicators(members: np.ndarray) -> sp.csr_array:
    """Links of every sample to its cluster in each member.

    Examples
    --------
    >>> indicators(np.array([[0, 1], [0, 0]])).toarray()
    array([[1., 0., 1.],
           [1., 1., 0.]])
    """
    n, M = members.shape
    first = np.concatenate([[0], np.cumsum(np.max(members, axis=0) + 1)])
    ends = np.arange(0, n * M + 1, M)
    return sp.csr_array(
        (np.ones(n * M), (members + first[:-1]).ravel(), ends), shape=(n, first[-1])
    )
