"""The pieces of a protocol: its data sets, its methods, and the settings of a method."""

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from inspect import signature
from numbers import Real
from typing import Any

import numpy as np

from polyspan.base import MultiViewClusterer
from polyspan.datasets import Dataset, load_dataset, load_digits_views, make_subspaces
from polyspan.datasets.registry import find_entry
from polyspan.methods import METHODS

SELECTIONS = ("default", "tuned", "nothing to tune", "label-free")
ORDERS = ("shuffled", "file", "sorted")  # of the samples
GENERATORS: dict[str, Callable[..., Dataset]] = {
    "digits": load_digits_views,
    "subspaces": make_subspaces,
}


@dataclass(frozen=True)
class Source:
    """A data set of a protocol: its name, its label in tables, and arguments of its generator."""

    name: str
    label: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def n_samples(self) -> int:
        """Number of samples, known without loading."""
        if self.name == "subspaces":
            default = signature(make_subspaces).parameters["n_samples"].default
        else:
            default = find_entry(self.name).samples
        return self.options.get("n_samples", default)


@dataclass(frozen=True)
class Method:
    """A method of a protocol; `harness.protocol` explains the fields."""

    name: str
    estimator: str
    selection: str
    params: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    datasets: list[str] | None = None
    paper: str = ""


@dataclass(frozen=True)
class Protocol:
    """The checked contents of a PROTOCOL.toml."""

    name: str
    seeds: int
    timeout: float | None
    methods: list[Method]
    datasets: list[Source]
    order: str = "shuffled"

    def pairs(self) -> list[tuple[Method, Source]]:
        """Every method paired with every data set that it is run on."""
        return [
            (method, source)
            for source in self.datasets
            for method in self.methods
            if method.datasets is None or source.label in method.datasets
        ]


def settings(method: Method, source: Source) -> list[dict[str, Any]]:
    """All settings of a method on a data set: fixed parameters and grid, in the grid's order.

    Examples
    --------
    >>> method = Method("GRMSC", "grmsc", "tuned", {"alpha": 0}, {"n_neighbors": [10, 60, 99]})
    >>> settings(method, Source("subspaces", "planted", {"n_samples": 60}))
    [{'alpha': 0, 'n_neighbors': 10}]
    """
    combinations = itertools.product(*method.grid.values())
    found = [method.params | dict(zip(method.grid, values, strict=True)) for values in combinations]
    n = source.n_samples
    return [params for params in found if _fits(params, n)]


def _fits(params: Mapping[str, Any], n: int) -> bool:
    ks = [params.get("n_neighbors"), params.get("estimator__n_neighbors")]
    return all(k < n for k in ks if isinstance(k, Real))


def build(estimator: str, params: Mapping[str, Any]) -> MultiViewClusterer:
    """Create the estimator; the name of an inner estimator is replaced by that estimator.

    Examples
    --------
    >>> build("bestsingleview", {"estimator": "lrr", "estimator__lam": 0.2})
    BestSingleView(estimator=LRR(lam=0.2))
    """
    inner = params.get("estimator")
    given: dict[str, Any] = {"estimator": METHODS[inner]()} if inner else {}
    return METHODS[estimator](**given).set_params(
        **{name: value for name, value in params.items() if name != "estimator"}
    )


def load_source(source: Source) -> Dataset:
    """Load or generate a data set; the most recent ones stay in memory."""
    return _loaded(source.name, json.dumps(source.options, sort_keys=True))


@lru_cache(maxsize=2)
def _loaded(name: str, options: str) -> Dataset:
    arguments = json.loads(options)
    if name == "subspaces" or arguments:
        return GENERATORS[name](**arguments)
    return load_dataset(name)


def load_in_order(source: Source, order: str, seed: int) -> Dataset:
    """Load a data set with its samples in an order; the most recent ones stay in memory."""
    if order == "file":
        return load_source(source)
    return _in_order(source.name, json.dumps(source.options, sort_keys=True), order, seed)


@lru_cache(maxsize=2)
def _in_order(name: str, options: str, order: str, seed: int) -> Dataset:
    data = _loaded(name, options)
    rows = sample_order(order, data.labels, seed)
    views, extra = [view[rows] for view in data.views], data.extra.items()
    known = {name: values[rows] for name, values in extra}
    return replace(data, views=views, labels=data.labels[rows], extra=known)


def sample_order(order: str, labels: np.ndarray, seed: int) -> np.ndarray:
    """Row numbers of the samples, shuffled by a seed; sorted by class only within the classes.

    Examples
    --------
    >>> labels = np.array([1, 0, 1, 0, 1])
    >>> labels[sample_order("sorted", labels, 0)].tolist()
    [0, 0, 1, 1, 1]
    >>> sample_order("file", labels, 0).tolist()
    [0, 1, 2, 3, 4]
    """
    if order == "file":
        return np.arange(len(labels))
    rows = np.random.default_rng(seed).permutation(len(labels))
    return rows if order == "shuffled" else rows[np.argsort(labels[rows], kind="stable")]
