"""The base of all estimators: check, solve, cluster; then assign, once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from inspect import Signature, signature
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from polyspan.base.outcome import Outcome
from polyspan.base.scikit_learn import BaseEstimator, ClusterMixin
from polyspan.inputs.params import Check, Neighbors, check_params, clusters, fitted, param, seed
from polyspan.inputs.views import Views, check_views, check_y
from polyspan.io.samples import KnownView
from polyspan.runtime.arrays import Array, to_numpy
from polyspan.runtime.cache import active, shared
from polyspan.runtime.memory import available_memory, check_memory, memory_words
from polyspan.runtime.messages import plural, view_names, view_title, warn_user


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


@dataclass_transform(kw_only_default=True, field_specifiers=(param, fitted))
class Declared:
    """Classes whose constructor is made from the parameters that they declare."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(eq=False, repr=False, kw_only=True)(cls)
        # As people read it: what may be positional, then the method's own parameters. The order of
        # keywords does not matter to calls; a dataclass has those of the bases first.
        declared = dict(signature(cls.__init__).parameters)
        order = [name for base in cls.__mro__ for name in vars(base).get("__annotations__", {})]
        own_first = [declared[name] for name in dict.fromkeys(["self", *order]) if name in declared]
        shown = Signature(sorted(own_first, key=lambda parameter: parameter.kind))
        cls.__init__.__signature__ = shown  # type: ignore[attr-defined]


class MultiViewClusterer(Declared, ClusterMixin, BaseEstimator):
    """Base of all methods, and of the mixins in `polyspan.base.capabilities`.

    A subclass declares its parameters and fitted attributes as fields (`param` and `fitted` of
    `polyspan.inputs.params`), from which the constructor is built. It has ``about``, its row in the
    table of methods, and ``solve(views, Xs)``, which gets the checked and the scaled views and
    returns one of `polyspan.base.outcome`. Only `fit` sets attributes, all at once and last.
    """

    about: ClassVar[About]
    family: ClassVar[str] = ""  # methods of one family make the same mistakes; "": none but its own
    view_tags: ClassVar[Mapping[str, bool]] = {}  # the `ViewTags` that are not False
    # Whether `solve` may read n_clusters. If False, one solution is shared between different
    # numbers of clusters, see `polyspan.runtime.cache`.
    solve_counts: ClassVar[bool] = True
    # Whether `solve` draws random numbers, so that no fit can use the solution of another.
    draws: ClassVar[bool] = False
    # Whether what `solve` finds depends on the order of the samples; or the parameter that decides.
    sees_order: ClassVar[bool | str] = False

    n_clusters: int = param(clusters, default=8, kw_only=False)
    views: Sequence[Any] | None = param(None, default=None, after=True)
    random_state: int | np.random.RandomState | None = param(seed, default=None, after=True)

    labels_: np.ndarray = fitted()
    view_names_: list[str] = fitted()
    n_features_in_: int = fitted()
    feature_names_in_: np.ndarray = fitted()
    sample_ids_: np.ndarray = fitted()
    _id_name: str = fitted()
    _view_columns: dict[str, list[str]] = fitted()
    _view_widths: list[int] = fitted()

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
            if y is not None:
                views = replace(views, y=y)
            Xs = self.scaled(views)
            self._check_scaled(views, Xs)
            outcome = self._outcome(views, Xs)
            learned = views.remembered() | outcome.learned(self) | self._kept(views, Xs)
        learned["labels_"] = _numbered_through(learned["labels_"])
        for complaint in (*outcome.complaints, *self._too_few(learned["labels_"])):
            warn_user(complaint)  # before anything is assigned, as a warning may be an error
        for name in fitted_names(type(self)) & vars(self).keys() - learned.keys():
            delattr(self, name)  # of an earlier fit
        vars(self).update(learned, _fitted_on=X)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Cluster the samples and return their labels.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        (n,) array
            Cluster of every sample, in the order of the first view.
        """
        return self.fit(X, y).labels_

    def _too_few(self, labels: np.ndarray) -> Iterator[Warning]:
        """A warning when fewer clusters came out than were asked for."""
        asked, got = self.n_clusters, len(np.unique(labels))
        if isinstance(asked, Integral) and got < asked:
            yield UserWarning(
                f"{type(self).__name__} found {plural(got, 'cluster')} instead of "
                f"n_clusters={asked}: the samples do not fall into more, because many of them are "
                "equal or their views say too little."
            )

    def check(self, X: Any) -> Views:
        """Check parameters and views without fitting, to find errors before any work is done.

        The estimator is not changed.

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
        views = check_views(X, self.views, self, missing=get_tags(self).missing_views)
        if get_tags(self).single_view and len(views.arrays) > 1:
            raise ValueError(
                f"{name} takes one view; got {len(views.arrays)}: wrap it in BestSingleView, or "
                "concatenate the views."
            )
        self._check_counts(views.n_samples)
        self._check_scales(len(views.arrays))
        need, free = self.footprint(views), self._free_memory()
        check_memory(name, views.n_samples, views.itemsize, *need, free)
        return self._prepare(views)

    def scaled(self, views: Views) -> list[Array]:
        """Return checked views as `solve` needs them."""
        return views.arrays

    def _check_scaled(self, views: Views, Xs: list[Array]) -> None:
        """Refuse scaled views that say nothing; here nothing is scaled."""

    def solve(self, views: Views, Xs: list[Array]) -> Outcome:
        """Solve the problem, using only the checked views, the scaled views and the parameters."""
        raise NotImplementedError

    def _outcome(self, views: Views, Xs: list[Array]) -> Outcome:
        """Call `solve`, or reuse the outcome of an earlier fit inside `polyspan.sharing`."""
        if active.get() is None or not self._shareable():
            return self.solve(views, Xs)
        after = {field.name for field in fields(self) if field.metadata.get("after")}
        after |= set() if self.solve_counts else {"n_clusters"}
        params = {k: _frozen(v) for k, v in self.get_params(deep=False).items() if k not in after}
        problem = type(self), tuple(sorted(params.items())), _frozen(views.used)
        return shared(solve_problem, problem, views.arrays, None)

    def _kept(self, views: Views, Xs: list[Array]) -> dict[str, Any]:
        """Return what `predict` needs besides what was learned, by the names of attributes."""
        return {}

    def brought_back(self, X: Array) -> Array:
        """Return an array where the user expects it; a device may have moved it."""
        return X

    # ---- what a subclass may override ----------------------------------------------------------

    @classmethod
    @cache
    def parameter_checks(cls) -> dict[str, Check]:
        """Checks of the parameters, by name; ``views`` has none, as it is checked with the data.

        Examples
        --------
        >>> from polyspan import LRR
        >>> LRR.parameter_checks()["lam"](-1.0)
        'a finite number >= 1e-50 and <= 1e+50'
        """
        checks: dict[str, Check] = {}
        for base in reversed(cls.__mro__):  # a new default keeps the inherited check
            for name, declared in vars(base).get("__dataclass_fields__", {}).items():
                if declared.metadata.get("check") is not None:
                    checks[name] = declared.metadata["check"]
        return checks

    def footprint(self, views: Views) -> tuple[float, float]:
        """Peak memory: how many n x n matrices, and how many further numbers per sample."""
        n = views.n_samples
        return 10 + 5 * sum(min(view.shape[1], n) for view in views.arrays) / n, 0.0

    def _shareable(self) -> bool:
        """Whether `solve` depends on views and parameters alone, without random numbers."""
        return not self.draws

    def _free_memory(self) -> int | None:
        """Bytes that are free where the method computes; None if not known."""
        return available_memory()

    def _neighbors(self, n: int, name: str = "n_neighbors") -> int:
        """Return a number of neighbors, or its default for n samples if it is None."""
        given: int | None = getattr(self, name)
        check: Any = self.parameter_checks()[name]  # Neighbors
        return min(check.usual, n - 1) if given is None else given

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
        cls, checks = type(self), self.parameter_checks()
        values = self.get_params(deep=False)
        changed = {name: checks[name] for name in checks if values[name] is not getattr(cls, name)}
        check_params(cls.__name__, values, changed)

    def _check_counts(self, n: int) -> None:
        """Refuse more clusters or neighbors than there can be with n samples."""
        name = type(self).__name__
        if self.n_clusters is not None and self.n_clusters > n:
            raise ValueError(
                f"{name}: n_clusters={self.n_clusters} is more than n_samples={n}: "
                "ask for fewer clusters."
            )
        for parameter, check in self.parameter_checks().items():
            count = getattr(self, parameter) if isinstance(check, Neighbors) else None
            if count is not None and count >= n:
                raise ValueError(
                    f"{name}: {parameter}={count} must be below n_samples={n}: a sample has only "
                    f"{n - 1} others."
                )

    def _check_scales(self, n_views: int) -> None:
        """Refuse lists of scalings that are not as many as the views; here nothing is scaled."""

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
                f"{name}.predict: got {plural(len(arrays), 'view')}, but the model "
                f"was fitted on {len(self.view_names_)}: pass the same views as to fit."
            )
        numbers = [str(k) for k in range(len(self.view_names_))]
        if names != self.view_names_ and numbers not in (names, self.view_names_):
            if set(names) != set(self.view_names_):
                raise ValueError(
                    f"{name}.predict got the views {view_names(names)}, but the model was fitted "
                    f"on {view_names(self.view_names_)}: pass views with the same names."
                )
            arrays = [arrays[names.index(known)] for known in self.view_names_]
        for view, known, d in zip(arrays, self.view_names_, self._view_widths, strict=True):
            if view.shape[1] != d:
                raise ValueError(
                    f"{name}.predict: {view_title(known)} has {view.shape[1]} features, but the "
                    f"model was fitted on {d}: pass the same features as to fit."
                )
        return arrays

    # ---- what a fitted estimator can tell ------------------------------------------------------

    def known_views(self) -> list[KnownView]:
        """What new samples must have to be predicted: the views and features of the fit.

        Returns
        -------
        list of KnownView
            For every view ``key``, its name in a dictionary of views; ``width``, the number of
            its features; ``columns``, their names, or None; and ``medians`` of the fitted
            samples, or None where the model does not keep these.

        Examples
        --------
        >>> from polyspan import ConcatKMeans
        >>> model = ConcatKMeans(2, random_state=0).fit({"rna": np.eye(3), "protein": np.eye(3)})
        >>> [view.key for view in model.known_views()]
        ['rna', 'protein']
        """
        check_is_fitted(self, "labels_")
        columns = getattr(self, "_view_columns", {})
        return [
            KnownView(name, width, columns.get(name), None)
            for name, width in zip(self.view_names_, self._view_widths, strict=True)
        ]

    def labels_frame(self) -> Any:
        """The labels as a table with one row per sample, in the order of ``labels_``.

        Returns
        -------
        pandas.DataFrame
            The ids of the samples, in a column called like the index they came from, or
            ``sample`` (rows are numbered from 0 if the views have no ids); ``cluster``; and
            ``certainty``, where the estimator knows it.

        Examples
        --------
        >>> import pandas as pd
        >>> from polyspan import ConcatKMeans
        >>> look = pd.DataFrame({"legs": [2.0, 4, 6], "wings": [2.0, 0, 4]}, ["wren", "fox", "bee"])
        >>> ConcatKMeans(n_clusters=3, random_state=0).fit(look).labels_frame()["sample"].tolist()
        ['wren', 'fox', 'bee']
        """
        check_is_fitted(self, "labels_")
        import pandas

        ids = getattr(self, "sample_ids_", np.arange(len(self.labels_)))
        name = getattr(self, "_id_name", "sample")
        columns = {"id" if name in ("cluster", "certainty") else name: ids, "cluster": self.labels_}
        if (certainty := getattr(self, "certainty_", None)) is not None:
            columns["certainty"] = certainty
        return pandas.DataFrame(columns)

    def explain(
        self,
        X: Any = None,
        *,
        held_out_view: bool = False,
        known: Any = None,
        survival: tuple[str, str] | None = None,
    ) -> Any:
        """What the clusters are: their features, and how they relate to what is known.

        Parameters
        ----------
        X : as in `fit`, optional
            The views; those of the fit if None (a model that was loaded or copied has none).
        held_out_view : bool, default=False
            Compare the features of each view between clusters that a copy of this model finds in
            the other views; honest, and as slow as a fit for every view. See
            `polyspan.explain.markers`.
        known : file, table or mapping of columns, optional
            What is known of the samples, matched by id where a file or a pandas.DataFrame and the
            views have ids; a mapping has its values in the order of the samples.
        survival : (str, str), optional
            The known columns that hold time and event (needs lifelines, the extra ``survival``).

        Returns
        -------
        polyspan.explain.Explanation
            ``markers``, ``known`` and ``survival``; ``frames()`` has them as tables.

        Examples
        --------
        >>> from polyspan import ConcatKMeans
        >>> from polyspan.datasets import make_subspaces
        >>> data = make_subspaces(60, 3, random_state=0)
        >>> found = ConcatKMeans(3, random_state=0).fit(data).explain(known={"k": data.labels})
        >>> len(found.markers.feature), found.known[0].kind
        (180, 'classes')
        """
        from polyspan.explain import explain_model  # this method only passes on what it gets

        X = self._views_of(X, "explain")
        return explain_model(self, X, held_out_view=held_out_view, known=known, times=survival)

    def report(
        self,
        path: str | Path,
        X: Any = None,
        *,
        known: Any = None,
        survival: tuple[str, str] | None = None,
        **options: Any,
    ) -> Path:
        """Write one HTML file that shows what the clusters are and how sure one may be.

        Parameters
        ----------
        path : path
            The file; its folder must exist.
        X : as in `fit`, optional
            The views; those of the fit if None (a model that was loaded or copied has none).
        known, survival : as in `explain`
        **options
            ``title``, ``notes``, ``figures`` (a folder for every figure and table) and ``force``,
            see `polyspan.report.write_report`.

        Returns
        -------
        Path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> from polyspan import ConcatKMeans
        >>> from polyspan.datasets import make_subspaces
        >>> model = ConcatKMeans(3, random_state=0).fit(make_subspaces(60, 3, random_state=0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(f"{folder}/report.html").name
        'report.html'
        """
        from polyspan.report import report_model  # this method only passes on what it gets

        X = self._views_of(X, "report")
        return report_model(self, path, X, known=known, survival=survival, **options)

    def _views_of(self, X: Any, name: str) -> Any:
        """The views that were given, or those of the fit."""
        check_is_fitted(self, "labels_")
        X = getattr(self, "_fitted_on", None) if X is None else X
        if X is None:
            raise ValueError(
                f"{name}: this model was loaded or copied and has no views: pass those of the fit."
            )
        return X

    def __getstate__(self) -> dict[str, Any]:
        """Copies and files of a model do not carry the user's data."""
        return {
            name: value for name, value in super().__getstate__().items() if name != "_fitted_on"
        }

    def __sklearn_tags__(self) -> ViewTags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        known = {field.name: getattr(tags, field.name) for field in fields(tags)}
        sees = (
            getattr(self, self.sees_order) if isinstance(self.sees_order, str) else self.sees_order
        )
        one_solution = self._shareable() and not sees
        return ViewTags(**known, **self.view_tags, one_solution=one_solution)


def fitted_names(cls: type[MultiViewClusterer]) -> set[str]:
    """Names of the attributes that a fit sets.

    Examples
    --------
    >>> from polyspan import LRR
    >>> sorted(name for name in fitted_names(LRR) if name.startswith("n"))
    ['n_features_in_', 'n_iter_']
    """
    return {field.name for field in fields(cls) if not field.init}


def solve_problem(problem: tuple[Any, ...], arrays: Sequence[Array]) -> Outcome:
    """Solve with a new model of this class that has these parameters and no others.

    The problem also says which of the views that were given are left.
    """
    method, params, used = problem
    model = method(**dict(params))
    views = Views(list(arrays), [str(k) for k in range(len(arrays))], used=used)
    return model.solve(views, model.scaled(views))


def _frozen(value: Any) -> Any:
    """Turn lists and vectors into tuples, which can be part of a key."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _numbered_through(labels: np.ndarray) -> np.ndarray:
    """Labels 0, 1, ..., also where k-means has lost a cluster."""
    clusters, codes = np.unique(labels, return_inverse=True)
    return labels if clusters[-1] + 1 == len(clusters) else codes.astype(labels.dtype)
