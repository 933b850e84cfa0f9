"""Clustering without labels and without tuning: what many members agree on.

Without labels there is no way to tell which setting is good, but good settings tend to find the
same clusters, while bad ones each find their own. So the samples are clustered by many members,
each a method with its settings. Each member is scored by how well its labels agree with those of
the others; the worst quarter is left out, and the samples are clustered once more by how often the
remaining members put them together.
"""

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state, estimator_html_repr

from polyspan.base import About, MultiViewClusterer
from polyspan.inputs.params import device_or_none, integer, param, real
from polyspan.inputs.views import Views
from polyspan.progress import telling
from polyspan.selection.consensus import consensus, pairwise_nmi, rank_settings
from polyspan.selection.count import Evidence, check_countable, complete_views, count
from polyspan.selection.grids import default_members
from polyspan.selection.members import Row, fit_members, html_table, text_table
from polyspan.solvers.arrays import Array
from polyspan.solvers.cache import sharing
from polyspan.solvers.loop import Solution


def count_or_auto(value: Any) -> str | None:
    """Check that a value is a number of clusters or ``"auto"``."""
    wrong = integer(1)(value)
    automatic = isinstance(value, str) and value == "auto"
    return None if wrong is None or automatic else f'{wrong}, or "auto"'


def several_clusterers(value: Any) -> str | None:
    """Check that a value is None or a list of polyspan's estimators."""
    if value is None or (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(one, MultiViewClusterer) for one in value)
    ):
        return None
    return "None, or a list of polyspan's estimators such as [GRMSC(), ConcatSpectral()]"


class ConsensusClusterer(MultiViewClusterer):
    """Cluster by what many methods and settings agree on; no labels, no tuning.

    The members of the default pool are settings of `GRMSC` and the plain baselines
    (`ConcatSpectral`, `ConcatKMeans`). With more than 4,000 samples (10,000 with a GPU as
    ``device``), where `GRMSC` takes too long, they are settings of `AnchorGRMSC`, the same model at
    a cost that is linear in the number of samples, and `LMVSC` is one more baseline;
    `ConcatSpectral` runs up to 10,000 samples.

    A member's agreement is the mean normalised mutual information between its labels and those of
    the other members, first averaged within groups of like members so that a large group does not
    outvote a small one. The quarter that agrees least is left out; the samples are clustered
    (spectral clustering) by how often the remaining members put them together.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. ``"auto"`` uses `count_clusters`, which is often wrong and never gives
        1: pass the number if you know it.
    members : list of estimators, default=None
        The methods that vote, each with its parameters; their ``n_clusters`` and ``random_state``
        are set by the consensus. None is the default pool.
    budget : float, default=None
        Seconds after which no new member is started; at least one runs. With a budget the result
        depends on the speed of the machine. None runs all members.
    device : str or None, default=None
        Where the members of the default pool compute if they have a parameter ``device``, such as
        ``"cuda"``; see `GRMSC`. Members that you pass keep their own devices.
    views : list or None, default=None
        As in `GRMSC`: the columns of each view when X is one matrix.
    random_state : int, RandomState or None, default=None
        Seeds k-means; one seed serves all members.
    verbose : int, default=0
        1 shows progress and the time left.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample in the consensus.
    certainty_ : (n,) array
        Certainty of every label, from 0 to 1: the mean share of the members in the consensus that
        put the sample together with another one of its cluster, less that share for the best other
        cluster.
    n_clusters_ : int
        Number of clusters, as given or as estimated.
    table_ : list of dict
        One row per member, in the order they ran: ``method``, ``setting`` (its parameters),
        ``group``, ``agreement`` with the others, ``nearness`` to the consensus (both None when it
        did not run), ``weight`` in the consensus, ``seconds``, ``status`` (``"ok"``, ``"failed"``
        or ``"not run"``) and ``reason``. It can be passed to `pandas.DataFrame` directly.
    evidence_ : dict
        What `count_clusters` measured; empty if the number was given.
    best_estimator_ : estimator
        The member in the consensus whose own ``labels_`` are nearest to it, fitted. It may be one
        of the baselines; `ConcatKMeans`, `ConcatSpectral` and `LMVSC` have no ``predict``.

    Notes
    -----
    No sample may lack a view: the baselines need all of them.

    Examples
    --------
    >>> from polyspan import ConsensusClusterer, GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> members = [GRMSC(lam1=1.0), GRMSC(lam1=100.0), GRMSC(affinity="sparse")]
    >>> model = ConsensusClusterer(3, members=members, random_state=0).fit(data.views)
    >>> model.labels_.shape, len(model.table_)
    ((60,), 3)
    """

    about = About(
        paper="consensus of many methods, chosen without labels",
        objective="cluster samples by how often the members put them together",
        needs="nothing; n_clusters if you know it",
        cost="that of its members",
    )

    n_clusters: int | str = param(  # type: ignore[assignment]
        count_or_auto, default="auto", kw_only=False
    )
    members: Sequence[MultiViewClusterer] | None = param(several_clusterers, default=None)
    budget: float | None = param(real(0, none="no limit"), default=None)
    device: str | None = param(device_or_none, default=None)
    verbose: int = param(integer(0), default=0)

    def solve(self, views: Views, Xs: list[Array]) -> Solution:
        """Fit the members and find what they agree on."""
        started = time.perf_counter()
        seed = int(check_random_state(self.random_state).randint(2**31))
        evidence: Evidence = {}
        with sharing(), telling(type(self).__name__, self.verbose) as tell:
            if isinstance(self.n_clusters, str):
                c, evidence = count(views, seed, None, tell, self.device)
            else:
                c = int(self.n_clusters)
            members = self._members(views, c, seed)
            table, labels = fit_members(
                members,
                views,
                deadline=None if self.budget is None else started + self.budget,
                reason="" if self.budget is None else f"the budget of {self.budget:g} s was spent",
                tell=tell,
            )
            merged, certainty, best = _merge(table, labels, c, seed)
            nearest = members[best]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the table has them
                nearest.fit(views)
        learnt = {
            "certainty_": certainty,
            "n_clusters_": c,
            "table_": table,
            "evidence_": evidence,
            "best_estimator_": nearest,
        }
        return Solution(merged, extras=learnt)

    def _members(self, views: Views, c: int, seed: int) -> list[MultiViewClusterer]:
        """Copies of the members, ready to be fitted."""
        pool = default_members(views, c, self.device) if self.members is None else self.members
        return [clone(one).set_params(n_clusters=c, random_state=seed) for one in pool]

    def footprint(self, views: Views) -> tuple[float, float]:
        """Nothing of its own: a member that does not fit into memory fails without the others."""
        return 0.0, 0.0

    def _views(self, X: Any) -> Views:
        return complete_views(type(self).__name__, X, self.views, self)

    def _check_counts(self, n: int) -> None:
        if isinstance(self.n_clusters, str):
            check_countable(n)
        else:
            super()._check_counts(n)

    def _shareable(self) -> bool:
        return False  # it draws random numbers and depends on time

    # ---- how it is shown -----------------------------------------------------------------------

    def __str__(self) -> str:
        """The parameters; after a fit, also the clusters and a short table of the members."""
        if not hasattr(self, "table_"):
            return repr(self)
        return f"{self!r}\n{self._found()}\n{text_table(self.table_)}"

    def _found(self) -> str:
        sizes = np.unique(self.labels_, return_counts=True)[1]
        shown = ", ".join(map(str, sizes[:20])) + ", ..." * (len(sizes) > 20)
        return (
            f"{len(sizes)} cluster{'s' * (len(sizes) != 1)} in {len(self.labels_)} samples "
            f"({shown}), certainty {np.mean(self.certainty_):.2f} on average"
        )

    def _html_repr(self) -> str:
        drawn = estimator_html_repr(self)
        if not hasattr(self, "table_"):
            return drawn
        return f"{drawn}<p>{self._found()}</p>{html_table(self.table_)}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return super()._repr_mimebundle_(**options) | {"text/plain": str(self)}


def _merge(
    table: list[Row], labels: np.ndarray, c: int, seed: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Labels, certainty, and the nearest member in the consensus; completes the table."""
    ran = [i for i, row in enumerate(table) if row["status"] == "ok"]
    agreement, weights = rank_settings(labels, [table[i]["group"] for i in ran])
    merged, certainty = consensus(labels, weights, c, random_state=seed)
    nearness = pairwise_nmi(np.vstack([merged, labels]))[0, 1:]
    for i, score, weight, near in zip(ran, agreement, weights, nearness, strict=True):
        table[i] |= {
            "agreement": float(score),
            "weight": float(weight),
            "nearness": float(near),
        }
    return merged, certainty, ran[int(np.argmax(np.where(weights > 0, nearness, -1)))]
