"""The path from views to labels, shared by all methods: check, scale, solve, cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags, get_tags

from polyspan.base.attributes import CHECKED, is_fitted
from polyspan.base.results import FITTED_ON, Results
from polyspan.inputs.devices import check_device
from polyspan.inputs.memory import available_memory, check_memory, memory_words
from polyspan.inputs.params import Check, check_params, clusters, param, seed
from polyspan.inputs.scaling import scaling_per_view
from polyspan.inputs.views import Views, check_views, check_y
from polyspan.solvers.arrays import Array, to_numpy
from polyspan.solvers.cache import active, shared
from polyspan.solvers.loop import Solution
from polyspan.solvers.messages import warn_user

# Parameters that do not change what `solve` finds, only how it is used afterwards.
AFTER_THE_SOLUTION = {"affinity", "n_kept", "n_init", "random_state", "views"}


class About(NamedTuple):
    """A method's row in the table of methods; plain text, mathematics in ASCII."""

    paper: str  # short citation with the year; arXiv:... or doi:... at its end becomes a link
    objective: str
    needs: str  # parameters and preprocessing that a user must think about
    cost: str


@dataclass(slots=True)
class ViewTags(Tags):
    """The scikit-learn tags of a method, and three more.

    Examples
    --------
    >>> from sklearn.utils import get_tags
    >>> from polyspan import LRR
    >>> get_tags(LRR()).single_view
    True
    """

    single_view: bool = False  # takes one view only
    missing_views: bool = False  # takes samples that lack a view (rows of NaN)
    one_solution: bool = False  # what it learns depends neither on seed nor on order of samples


@dataclass_transform(kw_only_default=True, field_specifiers=(param,))
@dataclass(eq=False, repr=False, kw_only=True)
class MultiViewClusterer(Results, ClusterMixin, BaseEstimator):
    """Base of all methods; the classes derived from it are the bases of each kind of method.

    A subclass declares its parameters as fields (`polyspan.inputs.params.param`), from which the
    constructor is built. It has ``about``, its row in the table of methods, and ``solve(views,
    Xs)``, which gets the checked and the scaled views and returns a
    `polyspan.solvers.loop.Solution`. Solvers only return values; `fit` sets the attributes.
    """

    about: ClassVar[About]
    view_tags: ClassVar[Mapping[str, bool]] = {}  # the `ViewTags` that are not False
    # Whether `solve` may read n_clusters. If False, one solution is shared between different
    # numbers of clusters, see `polyspan.solvers.cache`.
    solve_counts: ClassVar[bool] = True
    # Whether `solve` draws random numbers, so that no fit can use the solution of another.
    draws: ClassVar[bool] = False
    # Whether what `solve` finds depends on the order of the samples; or the parameter that decides.
    sees_order: ClassVar[bool | str] = False

    n_clusters: int = param(clusters, default=8, kw_only=False)
    views: Sequence[Any] | None = None
    random_state: int | np.random.RandomState | None = param(seed, default=None)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(eq=False, repr=False, kw_only=True)(cls)

    # ---- from views to labels ------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples.

        Parameters
        ----------
        X : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
            The views, samples in rows: arrays, tables or scipy.sparse matrices; or an AnnData, a
            MuData, or what `load_views` and `load_dataset` return. A single 2-D array is one view,
            or several when ``views`` says which columns belong together. Tables whose index names
            the samples are matched by it, in the order of the first one.
        y : ignored
            For scikit-learn's conventions; a matrix is refused, as it is a view that belongs in X.

        Returns
        -------
        self
        """
        check_y(y)
        with memory_words(type(self).__name__):
            views = self.check(X)
            Xs = self.scaled(views)
            self._check_scaled(views, Xs)
            found = self._solution(views, Xs, y)
            loop = {"n_iter_": found.n_iter, "history_": found.history}
            learned = {name: value for name, value in loop.items() if value is not None}
            learned |= found.extras | self._cluster(found, views, Xs)
        for name in [k for k in vars(self) if is_fitted(k) and k not in CHECKED | learned.keys()]:
            delattr(self, name)  # of an earlier fit
        for name, value in learned.items():
            setattr(self, name, value)
        FITTED_ON[self] = X
        for complaint in found.complaints:
            warn_user(complaint)
        self._say_if_few()
        return self

    def _say_if_few(self) -> None:
        """Warn when fewer clusters came out than were asked for."""
        asked, got = self.n_clusters, len(np.unique(self.labels_))
        if isinstance(asked, Integral) and got < asked:
            warn_user(
                f"{type(self).__name__} found {got} cluster{'s' * (got != 1)} instead of "
                f"n_clusters={asked}: the samples do not fall into more, because many of them are "
                "equal or their views say too little."
            )

    def check(self, X: Any) -> Views:
        """Check parameters and views without fitting, to find errors before any work is done.

        Only ``n_features_in_``, ``feature_names_in_``, ``view_names_`` and private attributes
        about the views are set.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        Views
            The views as the method will see them.
        """
        name = type(self).__name__
        self._check_params()
        views = self._views(X)
        if get_tags(self).single_view and len(views.arrays) > 1:
            raise ValueError(
                f"{name} takes one view; got {len(views.arrays)}: wrap it in BestSingleView, or "
                "concatenate the views."
            )
        self._check_counts(views.n_samples)
        self._check_scales(len(views.arrays))
        place = getattr(self, "device", None)
        free = available_memory() if place is None else check_device(name, place)
        check_memory(name, views.n_samples, views.itemsize, *self.footprint(views), free)
        self.view_names_ = views.names
        self._view_widths = [int(view.shape[1]) for view in views.arrays]
        return self._prepare(views)

    def _views(self, X: Any) -> Views:
        """Convert X to `Views` and check it."""
        return check_views(X, self.views, self, missing=get_tags(self).missing_views)

    def scaled(self, views: Views) -> list[Array]:
        """Return checked views as `solve` needs them."""
        return views.arrays

    def _check_scaled(self, views: Views, Xs: list[Array]) -> None:
        """Refuse scaled views that say nothing; here nothing is scaled."""

    def solve(self, views: Views, Xs: list[Array]) -> Solution:
        """Solve the problem, using only the checked views, the scaled views and the parameters."""
        raise NotImplementedError

    def _solution(self, views: Views, Xs: list[Array], y: Any = None) -> Solution:
        """Call `solve`, or reuse the solution of an earlier fit inside `solvers.cache.sharing`."""
        if active.get() is None or not self._shareable():
            return self.solve(views, Xs)
        after = AFTER_THE_SOLUTION | (set() if self.solve_counts else {"n_clusters"})
        params = {k: _frozen(v) for k, v in self.get_params(deep=False).items() if k not in after}
        what = Problem(type(self), tuple(sorted(params.items())))
        return shared(solve_problem, what, views.arrays, None)

    def _cluster(self, found: Solution, views: Views, Xs: list[Array]) -> dict[str, Any]:
        """Return the labels and what comes with them, by the names of the fitted attributes."""
        return {"labels_": found.Z}

    # ---- what a subclass may override ----------------------------------------------------------

    @classmethod
    def parameter_checks(cls) -> dict[str, Check]:
        """Checks of the parameters, by name; ``views`` has none, as it is checked with the data.

        Examples
        --------
        >>> from polyspan import LRR
        >>> LRR.parameter_checks()["lam"](-1.0)
        'a finite number > 0'
        """
        found: dict[str, Check] = {}
        for one in reversed(cls.__mro__):  # a new default keeps the inherited check
            for name, field in vars(one).get("__dataclass_fields__", {}).items():
                if "check" in field.metadata:
                    found[name] = field.metadata["check"]
        return found

    def footprint(self, views: Views) -> tuple[float, float]:
        """Peak memory: how many n x n matrices, and how many further numbers per sample."""
        n = views.n_samples
        return 10 + 5 * sum(min(view.shape[1], n) for view in views.arrays) / n, 0.0

    def _shareable(self) -> bool:
        """Whether `solve` depends on views and parameters alone, without random numbers."""
        return not self.draws

    def _neighbors(self, n: int, name: str = "n_neighbors") -> int:
        """Return a number of neighbors, or its default for n samples if it is None."""
        given: int | None = getattr(self, name, None)
        usual = self.__dataclass_fields__[name].metadata["check"].usual
        return min(usual, n - 1) if given is None else given

    def _given(self, *names: str) -> dict[str, Any]:
        """Return the named parameters as a dictionary."""
        return {name: getattr(self, name) for name in names}

    def _prepare(self, views: Views) -> Views:
        """Change checked views before they are scaled; here they stay the same."""
        return views

    def _prepare_new(self, views: Views) -> Views:
        """Do the same to new samples."""
        return views

    # ---- checks --------------------------------------------------------------------------------

    def _check_params(self) -> None:
        """Check the parameters that differ from their defaults."""
        defaults, own = type(self), self.get_params(deep=False)
        own = {k: v for k, v in own.items() if k != "views" and v is not getattr(defaults, k)}
        if own:
            checks = self.parameter_checks()
            check_params(
                defaults.__name__, own, {name: checks[name] for name in own if name in checks}
            )

    def _check_counts(self, n: int) -> None:
        """Refuse more clusters or neighbors than there can be with n samples."""
        name = type(self).__name__
        if self.n_clusters is not None and self.n_clusters > n:
            raise ValueError(
                f"{name}: n_clusters={self.n_clusters} is more than n_samples={n}: "
                "ask for fewer clusters."
            )
        for what in ("n_neighbors", "n_candidates"):
            neighbors = getattr(self, what, None)
            if neighbors is not None and neighbors >= n:
                raise ValueError(
                    f"{name}: {what}={neighbors} must be below n_samples={n}: a sample has only "
                    f"{n - 1} others."
                )

    def _check_scales(self, n_views: int) -> None:
        """Refuse lists of scalings that are not as many as the views."""
        for name in ("scale", "graph_scale"):
            scaling_per_view(getattr(self, name, None), n_views, type(self).__name__, name)

    def _check_new(self, X: Any) -> Views:
        """Check new samples against the views of the fit."""
        views = check_views(X, self.views, self, missing=get_tags(self).missing_views, new=True)
        arrays = self._in_order(views.arrays, views.names)
        arrays = [view if sp.issparse(view) else to_numpy(view) for view in arrays]
        return self._prepare_new(Views(arrays, self.view_names_))

    def _in_order(self, arrays: list[Any], names: list[str]) -> list[Any]:
        """Return new views in the order of the fitted ones, or raise if they do not match."""
        name = type(self).__name__
        if len(arrays) != len(self.view_names_):
            raise ValueError(
                f"{name}.predict: got {len(arrays)} view{'s' * (len(arrays) != 1)}, but the model "
                f"was fitted on {len(self.view_names_)}: pass the same views as to fit."
            )
        numbers = [str(k) for k in range(len(self.view_names_))]
        if names != self.view_names_ and numbers not in (names, self.view_names_):
            if set(names) != set(self.view_names_):
                raise ValueError(
                    f"{name}.predict got the views {', '.join(names)}, but the model was fitted on "
                    f"{', '.join(self.view_names_)}: pass views with the same names."
                )
            arrays = [arrays[names.index(known)] for known in self.view_names_]
        for view, known, d in zip(arrays, self.view_names_, self._view_widths, strict=True):
            if view.shape[1] != d:
                raise ValueError(
                    f"{name}.predict: view {known} has {view.shape[1]} features, but the model was "
                    f"fitted on {d}: pass the same features as to fit."
                )
        return arrays

    def __sklearn_tags__(self) -> ViewTags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        known = {field.name: getattr(tags, field.name) for field in fields(tags)}
        sees = (
            getattr(self, self.sees_order) if isinstance(self.sees_order, str) else self.sees_order
        )
        one_solution = self._shareable() and not sees
        return ViewTags(**known, **self.view_tags, one_solution=one_solution)


class Problem(NamedTuple):
    """Everything a solver may use besides the data; also the key of its solution."""

    method: type[MultiViewClusterer]
    params: tuple[tuple[str, Any], ...]


def solve_problem(what: Problem, arrays: Sequence[Array]) -> Solution:
    """Solve with a new model that has these parameters and no others."""
    model = what.method(**dict(what.params))
    views = Views(list(arrays), [str(k) for k in range(len(arrays))])
    return model.solve(views, model.scaled(views))


def _frozen(value: Any) -> Any:
    """Turn lists and vectors into tuples, which can be part of a key."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value
