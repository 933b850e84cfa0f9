"""Clustering without labels and without tuning: what many members agree on.

Without labels there is no way to tell which setting is good, but good settings tend to find the
same clusters, while bad ones each find their own. So the samples are clustered by many members,
each a method with its settings and scaling. Each member is scored by how well its labels agree with
those of other families of methods, and by what the views say of them; the samples are clustered
once more by how often the best third put them together.
"""

import html
import math
import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state, estimator_html_repr

from polyspan.base import About, Labels, MultiViewClusterer, TakesFiles
from polyspan.chunked.sources import holds_dask
from polyspan.chunked.workers import active_client, refuse_device
from polyspan.inputs.choice import choose_scaling, scalings_for
from polyspan.inputs.params import PerView, device_or_none, fitted, integer, param, real
from polyspan.inputs.scaling import SCALES, Scale, Scaling, scaling_per_view
from polyspan.inputs.views import Views
from polyspan.progress import Tell, telling
from polyspan.runtime.arrays import Array
from polyspan.runtime.cache import sharing
from polyspan.runtime.devices import check_device
from polyspan.runtime.memory import known_memory
from polyspan.runtime.messages import own_warnings, plural, view_title
from polyspan.selection import pool
from polyspan.selection.consensus import FEWEST, find_rivals, merge_members, merging, refined
from polyspan.selection.count import N_SCALINGS, Evidence, check_countable, count, labels_for
from polyspan.selection.evidence import Part, all_of, draw_part, scaled_graphs, view_modularity
from polyspan.selection.placing import Placing, kept_for_placing
from polyspan.selection.structure import Structure, find_structure

MANY_SCALINGS = 2  # vote where solutions are not exact: the best, and one other


class Scalings(NamedTuple):
    """How the views are scaled."""

    voting: list[tuple[Scaling, ...]]  # in which the pool runs, one per view in each
    best: list[Scaling]  # of every view
    sentences: list[str]  # likewise: how it is scaled, and why
    counting: list[tuple[Scaling, ...]] | None  # for the number of clusters; None if one is given


class Setting(NamedTuple):
    """What is settled before any work."""

    started: float  # as of `time.perf_counter`
    deadline: float | None
    seed: int
    large: bool  # whether the views are dask arrays
    part: Part  # samples that are looked at
    exact: bool  # whether they are few enough for `GRMSC`


def count_or_auto(value: Any) -> str | None:
    """Check that a value is a number of clusters or ``"auto"``."""
    wrong = integer(1)(value)
    automatic = isinstance(value, str) and value == "auto"
    return None if wrong is None or automatic else f'{wrong}, or "auto"'


def scaling_or_auto(value: Any) -> str | None:
    """Check that a value is a scaling, one per view, or ``"auto"``."""
    wrong = PerView(*SCALES)(value)
    automatic = isinstance(value, str) and value == "auto"
    return None if wrong is None or automatic else f"'auto' or {wrong}"


def several_clusterers(value: Any) -> str | None:
    """Check that a value is None or a list of polyspan's estimators."""
    if value is None or (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(estimator, MultiViewClusterer) for estimator in value)
    ):
        return None
    return "None, or a list of polyspan's estimators such as [GRMSC(), ConcatSpectral()]"


class ConsensusClusterer(Placing, TakesFiles):
    """Cluster by what many methods and settings agree on; no labels, no tuning.

    The default pool has members of several families, each in the scalings that suit the data: late
    fusion (`MeanGraph`, `NEMO`, `CGD`, `SNF`), early fusion (`ConcatSpectral`, `ConcatKMeans`),
    an ensemble (`FastMICE`) and subspaces (`GRMSC`, with and without the second order). With more
    than 4,000 samples (10,000 with a GPU as ``device``) `AnchorGRMSC` and `LMVSC` replace `GRMSC`,
    `NEMO`, `CGD` and `SNF` leave, and two scalings vote: the one that suits every view best, and
    one other. `print(model)` lists what ran.

    A member is ranked by its agreement with the members of other families (mean normalized mutual
    information) and by the modularity of its clusters on the neighbor graphs of the views. The
    best third by the sum of both ranks enter the consensus, where a family in g scalings has the
    root of g votes; the samples are clustered (spectral clustering) by how often they put them
    together.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. ``"auto"`` uses `count_clusters`, which is often wrong and never gives
        1: pass the number if you know it.
    members : list of estimators, default=None
        The methods that vote, each with its parameters; their ``n_clusters`` and ``random_state``
        are set by the consensus. None is the default pool.
    scale : {"auto", "unit", "standard+unit", "standard", None} or one per view, default="auto"
        Scaling of the default pool. ``"auto"`` decides for every view from its values which
        scalings suit it (``scaling_``); each of them votes.
    budget : float, default=None
        Seconds after which no new member is started, and one at work is stopped; at least one
        runs, the cheap ones first. With a budget the result depends on the speed of the machine.
        None runs all members.
    device : str or None, default=None
        Where the members of the default pool compute if they have a parameter ``device``, such as
        ``"cuda"``; see `GRMSC`. Members that you pass keep their own devices.
    views : list or None, default=None
        As in `GRMSC`: the columns of each view when X is one matrix.
    random_state : int, RandomState or None, default=None
        Seeds k-means; one seed serves all members.
    verbose : int, default=0
        1 shows progress and the time left, and makes ``print(model)`` list the members by family
        and scaling instead of by family.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample in the consensus.
    certainty_ : (n,) array or None
        Certainty of every label, from 0 to 1: the mean share of the members in the consensus that
        put the sample together with another one of its cluster, less that share for the best other
        cluster. None if the consensus has fewer than five members, or only one family.
    n_clusters_ : int
        Number of clusters, as given or as estimated.
    table_ : list of dict
        One row per member, in the order they ran: ``method``, ``setting`` (its parameters),
        ``family``, ``group`` (members that share a vote), ``agreement`` with other families,
        ``modularity`` in the views, ``score``, ``nearness`` to the consensus (these four are None
        when it did not run), ``weight`` in the consensus, ``seconds``, ``status`` (``"ok"``,
        ``"failed"`` or ``"not run"``) and ``reason``. `pandas.DataFrame` takes it as it is.
    member_labels_ : (m, n) array
        Labels of the members that ran, in the order of their rows in ``table_``; with more than
        4,000 samples (10,000 on a GPU) after `polyspan.selection.consensus.refined`, unless they
        are in dask arrays.
    scaling_ : list of str
        One sentence for every view: how it is scaled, and why.
    alternatives_ : list of dict
        Rival clusterings, where the members fall into camps that disagree, see
        `polyspan.selection.find_camps`; empty in the common case of one camp. Each has ``labels``,
        ``certainty``, ``members`` (positions among the rows that ran), ``share`` of the votes,
        ``similarity`` to ``labels_`` and ``modularity`` in every view.
    labels_by_k_ : dict of int to (n,) array
        Labels by number of clusters: ``labels_``, and with ``n_clusters="auto"`` those of the
        other numbers on the short list, from the mean graph of the views.
    structure_ : {"strong", "weak", "none found"} or why it was not tested
        Whether the views have structure that noise like them has not, at a level of .01.
    structure_evidence_ : dict
        The figures behind it, and for every view whether it takes part, says nothing, disagrees
        with the others, or decides alone; see docs/structure.md.
    modularity_ : list of float
        What every view says of the consensus: the modularity of ``labels_`` on its neighbor graph.
    evidence_ : dict
        What `count_clusters` measured; empty if the number was given.
    best_estimator_ : estimator
        The member in the consensus whose own ``labels_`` are nearest to it, fitted.

    Notes
    -----
    A sample may lack views: give its row there as NaN throughout (dense views only). Then only
    members that allow this run: `MeanGraph` and, up to 4,000 samples, `NEMO` and `GRMSC`. With more
    than 20,000 samples neighbors are approximate: labels depend a little on the order of samples.

    Views may also be dask arrays, which need not fit into memory; they are fitted on the active
    ``distributed.Client``, if there is one, and otherwise read in chunks. The pool is then
    `MeanGraph` and `AnchorGRMSC`. All values are checked, but whatever else looks at values looks
    at 20,000 samples drawn at random: the scalings, ``structure_``, the number of clusters, and
    the agreement and modularity by which members are ranked and camps are found. The consensus is
    of all samples. Only the drawn samples are kept: `predict` and `place` compare new samples with
    these. ``labels_by_k_`` has ``labels_`` only, and there is no ``device`` on a cluster.

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
    view_tags = {"missing_views": True}

    n_clusters: int | str = param(  # type: ignore[assignment]
        count_or_auto, default="auto", kw_only=False
    )
    members: Sequence[MultiViewClusterer] | None = param(several_clusterers, default=None)
    scale: Scale = param(scaling_or_auto, default="auto")
    budget: float | None = param(real(0, none="no limit"), default=None)
    device: str | None = param(device_or_none, default=None)
    verbose: int = param(integer(0), default=0)

    certainty_: np.ndarray | None = fitted()
    n_clusters_: int = fitted()
    table_: list[pool.Row] = fitted()
    member_labels_: np.ndarray = fitted()
    scaling_: list[str] = fitted()
    alternatives_: list[dict[str, Any]] = fitted()
    labels_by_k_: dict[int, np.ndarray] = fitted()
    structure_: str = fitted()
    structure_evidence_: Structure = fitted()
    evidence_: Evidence = fitted()
    best_estimator_: Any = fitted()

    def check(self, X: Any) -> Views:
        """Check parameters and views without fitting; of dask arrays only the sizes.

        Parameters
        ----------
        X : as in `fit`, or dask arrays

        Returns
        -------
        Views
        """
        views = super().check(X)
        if holds_dask(views):
            if active_client(views.arrays) is not None:
                refuse_device(type(self).__name__, self.device)
            self._free_memory()  # refuses a device that is not there
        return views

    def _in_chunks(self, X: Any) -> bool:
        return holds_dask(X)  # files are for the methods that read them

    def solve(self, views: Views, Xs: list[Array]) -> Labels:
        """Fit the members and find what they agree on."""
        with known_memory():
            setting = self._settle(views)
            _, deadline, seed, large, part, exact = setting
            scalings = self._scalings(part.views, exact and not large)
            structure = find_structure(part.views, scalings.best, seed, deadline, part.among)
            with sharing(), telling(type(self).__name__, self.verbose) as tell:
                c, evidence = self._count(setting, scalings, tell)
                fits = self._fit_members(views, setting, scalings, c, tell)
                near, graphs = scaled_graphs(part.views, scalings.voting)
                labels = fits.labels if large or exact else refined(graphs, fits.labels, seed)
                merge = merging(views if large else None, c, seed)
                merged = merge_members(fits.ran, labels, graphs, merge, part.rows)
                rivals = find_rivals(
                    labels, fits.ran, merged.labels, graphs, c, seed, merge, part.rows
                )
                best = _fitted(fits.models[merged.nearest], views)
                by_number = {c: merged.labels}
                if not large:
                    by_number |= _other_numbers(views, c, evidence)
        complaints = _too_few(fits.table)
        learned = {
            "certainty_": None if complaints else merged.certainty,
            "n_clusters_": c,
            "scaling_": scalings.sentences,
            "table_": fits.table,
            "member_labels_": np.asarray(labels, dtype=np.int32),
            "evidence_": evidence,
            "labels_by_k_": by_number,
            "structure_": structure["verdict"],
            "structure_evidence_": structure,
            "alternatives_": rivals,
            "modularity_": view_modularity(graphs, merged.labels[part.rows]).tolist(),
            "best_estimator_": best,
            **kept_for_placing(part.views, scalings.voting, near),
            **({"_drawn": part.rows} if large else {}),
        }
        return Labels(merged.labels, extras=learned, complaints=complaints)

    def _settle(self, views: Views) -> Setting:
        """Draw the samples that are looked at."""
        started = time.perf_counter()
        deadline = None if self.budget is None else started + self.budget
        seed = int(check_random_state(self.random_state).randint(2**31))
        large = holds_dask(views)
        part = draw_part(views, seed) if large else all_of(views)
        return Setting(started, deadline, seed, large, part, pool.exactly(part.views, self.device))

    def _scalings(self, views: Views, all_vote: bool) -> Scalings:
        """Take the scalings that are given, or choose those that suit the values."""
        if not (isinstance(self.scale, str) and self.scale == "auto"):
            given = list(scaling_per_view(self.scale, len(views.arrays), type(self).__name__))
            named = zip(views.names, given, strict=True)
            sentences = [f"{view_title(name)}: {scale!r}, as given" for name, scale in named]
            return Scalings([tuple(given)], given, sentences, None)
        choices = [choose_scaling(view, name) for view, name in views]
        best = [choice.allowed[0] for choice in choices]
        suit = scalings_for(views, choices)
        two = list(dict.fromkeys([tuple(best), *suit]))[:MANY_SCALINGS]
        sentences = [choice.sentence for choice in choices]
        return Scalings(suit if all_vote else two, best, sentences, suit[:N_SCALINGS])

    def _count(
        self, setting: Setting, scalings: Scalings, tell: Tell | None
    ) -> tuple[int, Evidence]:
        """The number of clusters, as given or estimated in a third of the budget."""
        if not isinstance(self.n_clusters, str):
            return int(self.n_clusters), {}
        started, _, seed, _, part, exact = setting
        third = None if self.budget is None else started + self.budget / 3
        return count(part, seed, exact, None, tell, self.device, third, scalings.counting)

    def _fit_members(
        self, views: Views, setting: Setting, scalings: Scalings, c: int, tell: Tell | None
    ) -> pool.Fits:
        """Fit the members that were given, or the default pool."""
        _, deadline, seed, large, part, exact = setting
        if self.members is not None:
            members = [pool.member_of(estimator) for estimator in self.members]
        else:
            kind = "chunked" if large else "exact" if exact else "many"
            as_given = scalings.counting is None
            members = pool.default_pool(part, c, scalings.voting, kind, self.device, as_given)
        reason = "" if self.budget is None else f"the budget of {self.budget:g} s was spent"
        on_cluster = active_client(views.arrays) is not None  # what is large stays there
        limit = math.inf if on_cluster else pool.KEPT_BYTES
        params = {"n_clusters": c, "random_state": seed}
        return pool.fit_members(members, views, params, deadline, reason, tell, limit)

    def footprint(self, views: Views) -> tuple[float, float]:
        """Nothing of its own: a member that does not fit into memory fails without the others."""
        return 0.0, 0.0

    def _check_counts(self, n: int) -> None:
        if isinstance(self.n_clusters, str):
            check_countable(n)
        else:
            super()._check_counts(n)

    def _free_memory(self) -> int | None:
        """Not needed, see `footprint`; but a device that is not there is refused."""
        return None if self.device is None else check_device(type(self).__name__, self.device)

    def _check_scales(self, n_views: int) -> None:
        scaling_per_view(self.scale, n_views, type(self).__name__)

    def _shareable(self) -> bool:
        return False  # it draws random numbers and depends on time

    # ---- how it is shown -----------------------------------------------------------------------

    def __str__(self) -> str:
        """The parameters; after a fit, also the clusters and a short table of the members."""
        if not hasattr(self, "table_"):
            return repr(self)
        table = pool.text_table(self.table_, "group" if self.verbose else "family")
        return "\n".join([repr(self), *self._sentences(), table])

    def _sentences(self) -> list[str]:
        """The clusters, and the members that are lost."""
        sizes = np.unique(self.labels_, return_counts=True)[1]
        shown = ", ".join(map(str, sizes[:20])) + ", ..." * (len(sizes) > 20)
        clusters = f"{plural(len(sizes), 'cluster')} in {len(self.labels_)} samples ({shown})"
        if self.certainty_ is not None:
            clusters += f", certainty {np.mean(self.certainty_):.2f} on average"
        return [clusters, *pool.tell_lost(self.table_)]

    def _html_repr(self) -> str:
        diagram = estimator_html_repr(self)
        if not hasattr(self, "table_"):
            return diagram
        text = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self._sentences())
        return f"{diagram}{text}{pool.html_table(self.table_)}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return super()._repr_mimebundle_(**options) | {"text/plain": str(self)}


def _fitted(model: MultiViewClusterer, views: Views) -> MultiViewClusterer:
    """The member, fitted again if it was not kept."""
    if not hasattr(model, "labels_"):
        with own_warnings():
            warnings.simplefilter("ignore")  # the table has them
            model.fit(views)
    return model


def _other_numbers(views: Views, c: int, evidence: Evidence) -> dict[int, np.ndarray]:
    """Labels for the other numbers on the short list, from the graphs that it was made by."""
    numbers = [row["n_clusters"] for row in evidence.get("shortlist", [])]
    others = [number for number in numbers if number != c]
    if not others or "graph" not in evidence:
        return {}
    return labels_for(views, others, evidence["graph"]["scales"])


def _too_few(table: list[pool.Row]) -> tuple[Warning, ...]:
    """A warning where the members in the consensus are too few, or too alike, to tell certainty."""
    used = [row for row in table if row["weight"] > 0]
    families = len({row["family"] for row in used})
    if len(used) >= FEWEST and families > 1:
        return ()
    who = f"{plural(len(used), 'member')} of {plural(families, 'family', 'families')}"
    words = f"ConsensusClusterer: no certainty is given, because the consensus has {who}, and it"
    words += f" takes at least {FEWEST} members of 2."
    return (UserWarning(" ".join([words, *pool.tell_lost(table)])),)
