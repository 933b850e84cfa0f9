"""Clustering without labels and without tuning: what many members agree on.

Without labels there is no way to tell which setting is good, but good settings tend to find the
same clusters, while bad ones each find their own. So the samples are clustered by many members,
each a method with its settings and scaling. Each member is scored by what the views say of its
labels; the samples are clustered once more by how often the best third put them together.
"""

import html
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import check_random_state, estimator_html_repr

from polyspan.base import About, Labels, MultiViewClusterer, TakesFiles
from polyspan.chunked.sources import holds_dask
from polyspan.chunked.workers import active_client, refuse_device
from polyspan.inputs.choice import choose_scaling, two_scalings
from polyspan.inputs.params import PerView, device_or_none, fitted, integer, jobs, param, real
from polyspan.inputs.scaling import SCALES, Scale, Scaling, scaling_per_view
from polyspan.inputs.views import Views
from polyspan.progress import telling
from polyspan.runtime.arrays import Array
from polyspan.runtime.cache import sharing
from polyspan.runtime.devices import check_device
from polyspan.runtime.memory import known_memory
from polyspan.runtime.messages import plural, recording, view_title
from polyspan.runtime.tasks import INTERRUPTED
from polyspan.selection import pool
from polyspan.selection.consensus import FEWEST, find_rivals, merge_members, merging
from polyspan.selection.count import Evidence, check_countable, count, labels_for
from polyspan.selection.evidence import Part, all_of, draw_part, evidence_graphs, view_modularity
from polyspan.selection.placing import Placing, kept_for_placing
from polyspan.selection.structure import LATE, Structure, find_structure, untested

FOR_MEMBERS = 0.8  # of the budget; what is left is for the evidence and the consensus


class Scalings(NamedTuple):
    """How the views are scaled."""

    voting: list[tuple[Scaling, ...]]  # in which the pool runs, one per view in each
    sentences: list[str]  # for every view, how it is scaled, and why


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
    """Check that a value is None, "thorough", or a list of polyspan's estimators."""
    if value is None or (isinstance(value, str) and value == "thorough"):
        return None
    if (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(estimator, MultiViewClusterer) for estimator in value)
    ):
        return None
    return "None, 'thorough', or a list of polyspan's estimators such as [GRMSC(), MeanGraph()]"


class ConsensusClusterer(Placing, TakesFiles):
    """Cluster by what many methods and settings agree on; no labels, no tuning.

    The default pool has ten members in each of two scalings that suit the data, each about as cheap
    as `MeanGraph`: graphs of neighbors (`MeanGraph`), graphs of self-expression (`SelfGraph`), both
    added, the graph of all features (`ConcatSpectral`) and k-means (`ConcatKMeans`). It is the same
    for any number of samples. `print(model)` lists what ran.

    A member is ranked by what the views say of its labels: the mean squared modularity on their
    graphs of neighbors and of self-expression. The best third enter the consensus, where a family
    in g scalings has the root of g votes; the samples are clustered (spectral clustering) by how
    often they put them together.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. ``"auto"`` uses `count_clusters`, which is often wrong and never gives
        1: pass the number if you know it.
    members : list of estimators or "thorough", default=None
        The methods that vote, each with its parameters; their ``n_clusters`` and ``random_state``
        are set by the consensus. None is the default pool. ``"thorough"`` adds `GRMSC`, `FastMICE`,
        `SNF` and `CGD`, which take ten to a hundred times as long; docs/choosing-without-labels.md
        says where they help.
    scale : {"auto", "unit", "standard+unit", "standard", None} or one per view, default="auto"
        Scaling of the default pool. ``"auto"`` decides for every view from its values which
        scalings suit it (``scaling_``): the best votes, and one other.
    budget : float, default=None
        Seconds that the fit may take: members still at work after four fifths of them are stopped,
        and the answer is what those before them agree on; the first always runs. With a budget the
        result depends on the speed of the machine. None runs all members.
    n_jobs : int or None, default=None
        Members that run at the same time, each on one core; None is 1, or what a joblib context
        says, and -1 is all cores. Labels do not depend on it.
    device : str or None, default=None
        Where the members of the default pool compute if they have a parameter ``device``, such as
        ``"cuda"``; see `GRMSC`. Members that you pass keep their own devices.
    views : list or None, default=None
        As in `GRMSC`: the columns of each view when X is one matrix.
    random_state : int, RandomState or None, default=None
        Seeds k-means; one seed serves all members.
    verbose : int or None, default=None
        None shows progress and the time left after three seconds, in a terminal or notebook; 0
        never does, and 1 always, and makes ``print(model)`` list the members by family and scaling
        instead of by family.

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
        Labels of the members that ran, in the order of their rows in ``table_``.
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
    view_weights_ : list of dict
        One row per view: ``view``, the modularity of ``labels_`` on its graphs of ``neighbors`` and
        of ``self_expression`` (None where lengths count), and ``weight``, the share of the view in
        the score of the consensus.
    evidence_ : dict
        What `count_clusters` measured; empty if the number was given.
    best_estimator_ : estimator
        The member in the consensus whose own ``labels_`` are nearest to it, fitted unless the
        budget was spent.

    Notes
    -----
    A sample may lack views: give its row there as NaN throughout (dense views only). Then only
    members that allow this run: `MeanGraph` and `SelfGraph`. Among more than 5,000 samples links of
    self-expression are sought among the nearest, and among more than 20,000 these are approximate:
    labels depend a little on the order of samples.

    Views may also be dask arrays, which need not fit into memory; they are fitted on the active
    ``distributed.Client``, if there is one, and otherwise read in chunks. The pool is then
    `MeanGraph` and `AnchorGRMSC`. All values are checked, but whatever else looks at values looks
    at 20,000 samples drawn at random: the scalings, ``structure_``, the number of clusters, and the
    modularity by which members are ranked and camps are found. The consensus is of all samples.
    Only the drawn samples are kept: `predict` and `place` compare new samples with these.
    ``labels_by_k_`` has ``labels_`` only, and there is no ``device`` on a cluster.

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
    members: Sequence[MultiViewClusterer] | str | None = param(several_clusterers, default=None)
    scale: Scale = param(scaling_or_auto, default="auto")
    budget: float | None = param(real(0, none="no limit"), default=None)
    n_jobs: int | None = param(jobs, default=None)
    device: str | None = param(device_or_none, default=None)
    verbose: int | None = param(integer(0, none="after three seconds"), default=None)

    certainty_: np.ndarray | None = fitted()
    n_clusters_: int = fitted()
    table_: list[pool.Row] = fitted()
    member_labels_: np.ndarray = fitted()
    scaling_: list[str] = fitted()
    alternatives_: list[dict[str, Any]] = fitted()
    labels_by_k_: dict[int, np.ndarray] = fitted()
    structure_: str = fitted()
    structure_evidence_: Structure = fitted()
    view_weights_: list[dict[str, Any]] = fitted()
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
        started = time.perf_counter()
        deadline = None if self.budget is None else started + FOR_MEMBERS * self.budget
        seed, large = int(check_random_state(self.random_state).randint(2**31)), holds_dask(views)
        with known_memory(), sharing(), telling(type(self).__name__, self.verbose) as tell:
            part = draw_part(views, seed) if large else all_of(views)
            scalings, sentences = self._scalings(part.views)
            c, evidence = self._count(part, seed, scalings, started)
            members = self._members(views, part, c, scalings)
            given = {"n_clusters": c, "random_state": seed}
            by_scaling = {scaling: pool.prepared(part.views, scaling) for scaling in scalings}
            fits, (structure,) = pool.fit_members(
                members,
                views,
                by_scaling,
                given,
                n_jobs=effective_n_jobs(self.n_jobs),
                deadline=deadline,
                reason="" if self.budget is None else f"the budget of {self.budget:g} s was spent",
                tell=tell,
                others=[partial(_tested, part, scalings[0], seed, deadline)],
            )
            ran_in = {members[number].scaling for number in fits.ran}
            by_scaling = {s: X for s, X in by_scaling.items() if s in ran_in} or by_scaling
            near, graphs = evidence_graphs(by_scaling, self.device)
            ran = [fits.table[number] for number in fits.ran]
            merge = merging(views if large else None, c, seed)
            merged = merge_members(ran, fits.labels, graphs, merge, part.rows)
            rivals = find_rivals(fits.labels, ran, merged.labels, graphs, c, seed, merge, part.rows)
            best = clone(members[fits.ran[merged.nearest]].estimator).set_params(**given)
            if self.budget is None or time.perf_counter() < started + self.budget:
                with recording():  # the table has what it says
                    best.fit(views)
            others = {} if large else _other_numbers(views, c, evidence)
        late = LATE if self.budget is not None else f"not tested: {INTERRUPTED}"
        structure = structure or untested(part.views.names, late)
        quality = view_modularity(graphs, merged.labels[part.rows])
        complaints = _too_few(fits.table)
        learned = {
            "certainty_": None if complaints else merged.certainty,
            "n_clusters_": c,
            "scaling_": sentences,
            "table_": fits.table,
            "member_labels_": np.asarray(fits.labels, dtype=np.int32),
            "evidence_": evidence,
            "labels_by_k_": {c: merged.labels} | others,
            "structure_": structure["verdict"],
            "structure_evidence_": structure,
            "alternatives_": rivals,
            "modularity_": quality[:, 0].tolist(),
            "view_weights_": _weights(part.views.names, quality),
            "best_estimator_": best,
            **kept_for_placing(part.views, list(by_scaling), near),
            **({"_drawn": part.rows} if large else {}),
        }
        return Labels(merged.labels, extras=learned, complaints=complaints)

    def _scalings(self, views: Views) -> Scalings:
        """Take the scalings that are given, or choose those that suit the values."""
        if not (isinstance(self.scale, str) and self.scale == "auto"):
            given = list(scaling_per_view(self.scale, len(views.arrays), type(self).__name__))
            named = zip(views.names, given, strict=True)
            sentences = [f"{view_title(name)}: {scale!r}, as given" for name, scale in named]
            return Scalings([tuple(given)], sentences)
        choices = [choose_scaling(view, name) for view, name in views]
        return Scalings(two_scalings(views, choices), [choice.sentence for choice in choices])

    def _count(
        self, part: Part, seed: int, scalings: list[tuple[Scaling, ...]], started: float
    ) -> tuple[int, Evidence]:
        """The number of clusters, as given or estimated in a third of the budget."""
        if not isinstance(self.n_clusters, str):
            return int(self.n_clusters), {}
        third = None if self.budget is None else started + self.budget / 3
        return count(part, seed, None, self.device, third, scalings)

    def _members(
        self, views: Views, part: Part, c: int, scalings: list[tuple[Scaling, ...]]
    ) -> list[pool.Member]:
        """The members that were given, or the default pool."""
        if not (self.members is None or isinstance(self.members, str)):
            return [pool.member_of(estimator) for estimator in self.members]
        if holds_dask(views):
            return pool.chunked_pool(part.among, c, scalings, part.lacking)
        thorough = self.members == "thorough"
        return pool.default_pool(part.among, scalings, self.device, part.lacking, thorough)

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


def _tested(part: Part, scaling: Any, seed: int, deadline: float | None) -> Structure:
    """Whether there is structure; a test that fails does not end the fit."""
    try:
        return find_structure(part.views, scaling, seed, deadline, part.among)
    except Exception as error:
        return untested(part.views.names, f"not tested: {type(error).__name__}: {error}")


def _weights(names: Sequence[str], quality: np.ndarray) -> list[dict[str, Any]]:
    """What every view says of the consensus, and its share in the score."""
    squares = np.nanmean(np.maximum(quality, 0) ** 2, axis=1)
    shares = squares / (squares.sum() or 1.0)
    rows = []
    for name, (near, own), weight in zip(names, quality.tolist(), shares.tolist(), strict=True):
        known = None if np.isnan(own) else own
        rows.append({"view": name, "neighbors": near, "self_expression": known, "weight": weight})
    return rows


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
