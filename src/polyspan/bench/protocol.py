"""A protocol says what is compared: methods x data sets x parameter grid x seeds.

It is a TOML file::

    name = "mine"
    seeds = 10                  # runs with the seeds 0, 1, ..., 9, the same for every method
    timeout = 600               # seconds for one job, loading the data included; none if left out

    [[dataset]]
    name = "ngs"                # of `polyspan data list`; or "subspaces", which is generated
    label = "NGs"               # how tables call it; its name if left out

    [[dataset]]
    name = "digits"
    n_samples = 200             # an argument of load_digits_views; "subspaces": of make_subspaces

    [[method]]
    name = "GRMSC"              # how tables call it
    estimator = "grmsc"         # a name in polyspan.METHODS
    selection = "tuned"         # "default", "tuned" or "label-free"
    params = { orientation = "published" }
    grid = { lam1 = [1.0, 100.0], n_neighbors = [10, 30] }
    datasets = ["NGs"]          # only these; all if left out
    paper = "GRMSC"             # the paper's row to stand beside it; its name if left out

``default`` is one setting for all data. ``tuned`` runs the grid with one seed, takes for each data
set the setting with the best NMI (the labels are seen!) and runs all seeds there; without a grid it
marks a method that has nothing to tune. ``label-free`` is a method that chooses by itself.
TOML has no None: write "None". A parameter of an inner estimator is written as in scikit-learn,
``{ estimator = "lrr", estimator__lam = 0.5 }``. ``methods_from = "other.toml"`` takes the methods
of another protocol. Values of n_neighbors that are not below the number of samples are left out.
"""

import difflib
import hashlib
import itertools
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from inspect import signature
from numbers import Real
from pathlib import Path
from typing import Any

from polyspan.base import MultiViewClusterer
from polyspan.datasets import Dataset, load_dataset, load_digits_views, make_subspaces
from polyspan.datasets.registry import find_entry
from polyspan.inputs.params import check_params
from polyspan.methods import METHODS

SELECTIONS = ("default", "tuned", "label-free")
GIVEN = ("n_clusters", "random_state")  # come from the data and from the seed
GENERATORS: dict[str, Callable[..., Dataset]] = {
    "digits": load_digits_views,
    "subspaces": make_subspaces,
}
KINDS: dict[str, tuple[type, tuple[str, ...]]] = {
    "a table": (dict, ("params", "grid")),
    "a list": (list, ("datasets",)),
    "a text": (str, ("name", "label", "estimator", "selection", "paper", "methods_from")),
}
TUNE_SEED = 0
TUNE_SCORE = "nmi"


class UnknownNameError(ValueError):
    """The protocol has no method or data set of that name."""


@dataclass(frozen=True)
class Source:
    """A data set of a protocol: its name, how tables call it, and arguments of its generator."""

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
    """A method of a protocol; the comment at the head of this module explains the fields."""

    name: str
    estimator: str
    selection: str
    params: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    datasets: list[str] | None = None
    paper: str = ""


@dataclass(frozen=True)
class Protocol:
    """What a PROTOCOL.toml says, checked."""

    name: str
    seeds: int
    timeout: float | None
    methods: list[Method]
    datasets: list[Source]

    def pairs(self) -> list[tuple[Method, Source]]:
        """Every method with every data set that it is run on."""
        return [
            (method, source)
            for source in self.datasets
            for method in self.methods
            if method.datasets is None or source.label in method.datasets
        ]


@dataclass(frozen=True)
class Job:
    """One fit: a setting of a method, a data set and a seed; ``stage`` is "tune" or "final"."""

    protocol: str
    method: Method
    source: Source
    params: dict[str, Any]
    seed: int
    stage: str
    timeout: float | None

    @property
    def key(self) -> str:
        """Hash of what decides the result: estimator, parameters, data and seed.

        Examples
        --------
        >>> method = Method("GRMSC", "grmsc", "default")
        >>> one = Job("a", method, Source("ngs", "NGs"), {"lam1": 1}, 0, "final", None)
        >>> other = Job("b", method, Source("ngs", "News"), {"lam1": 1.0}, 0, "tune", 9.0)
        >>> one.key == other.key
        True
        """
        what = [self.method.estimator, self.params, self.source.name, self.source.options]
        text = json.dumps(_plain([*what, self.seed]), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_protocol(path: str | Path) -> Protocol:
    """Read and check a protocol: everything that can be known to fail fails here.

    Parameters
    ----------
    path : path
        A TOML file, see `polyspan.bench.protocol`.

    Returns
    -------
    Protocol

    Raises
    ------
    ValueError
        The file is not a protocol, or names a method, data set or parameter that does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from polyspan.bench import read_protocol
    >>> text = '''
    ... name = "small"
    ... seeds = 2
    ... [[dataset]]
    ... name = "digits"
    ... n_samples = 100
    ... [[method]]
    ... name = "k-means"
    ... estimator = "concatkmeans"
    ... selection = "default"
    ... '''
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write(text), file.flush()
    ...     protocol = read_protocol(file.name)
    >>> protocol.datasets[0].label, count_jobs(protocol)
    ('digits (n_samples=100)', 2)
    """
    path = Path(path)
    content = _toml(path)
    try:
        return _protocol(content, path)
    except UnknownNameError:
        raise
    except ValueError as error:
        raise type(error)(f"{path}: {error}") from error


def narrow(protocol: Protocol, methods: Sequence[str], datasets: Sequence[str]) -> Protocol:
    """Only these methods and data sets of a protocol; an empty list leaves all.

    Data sets may be called by name or label, methods by the name in tables or by estimator.
    """
    for kind, wanted, known in (
        ("method", methods, [(m.name, m.estimator) for m in protocol.methods]),
        ("data set", datasets, [(s.label, s.name) for s in protocol.datasets]),
    ):
        for name in wanted:
            if not any(name in names for names in known):
                first = list(dict.fromkeys(names[0] for names in known))
                raise UnknownNameError(
                    f"the protocol {protocol.name!r} has no {kind} {name!r}{_hint(name, first)}"
                )
    kept = replace(
        protocol,
        methods=[m for m in protocol.methods if not methods or {m.name, m.estimator} & {*methods}],
        datasets=[s for s in protocol.datasets if not datasets or {s.label, s.name} & {*datasets}],
    )
    if not kept.pairs():
        raise UnknownNameError("none of these methods is run on any of these data sets")
    return kept


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
    return [params for params in found if _fits(params, source.n_samples)]


def first_jobs(protocol: Protocol) -> list[Job]:
    """The jobs that wait for nothing: all grids, and all seeds where nothing is tuned."""
    jobs = []
    for method, source in protocol.pairs():
        found = settings(method, source)
        if method.grid:
            jobs += [_tuning_job(protocol, method, source, params) for params in found]
        else:
            jobs += _finals(protocol, method, source, found[0])
    return jobs


def final_jobs(protocol: Protocol, rows: Iterable[Mapping[str, Any]]) -> list[Job]:
    """All seeds at the setting with the best NMI among the rows of the tuning stage.

    The first in the grid's order wins a tie. A method whose settings all failed has no final jobs.
    """
    scores: dict[tuple[str, str, str], float] = {
        (row["method"], row["selection"], row["key"]): row[TUNE_SCORE]
        for row in rows
        if row["protocol"] == protocol.name and row["stage"] == "tune" and row["status"] == "ok"
    }
    jobs = []
    for method, source in protocol.pairs():
        best, best_score = None, float("-inf")
        for params in settings(method, source) if method.grid else []:
            job = _tuning_job(protocol, method, source, params)
            score = round(scores.get((method.name, method.selection, job.key), float("-inf")), 10)
            if score > best_score:
                best, best_score = params, score
        if best is not None:
            jobs += _finals(protocol, method, source, best)
    return jobs


def count_jobs(protocol: Protocol) -> int:
    """Number of jobs of both stages."""
    tuned = sum(bool(method.grid) for method, _ in protocol.pairs())
    return len(first_jobs(protocol)) + tuned * protocol.seeds


def build(estimator: str, params: Mapping[str, Any]) -> MultiViewClusterer:
    """Make the estimator; the name of an inner one becomes that estimator.

    Examples
    --------
    >>> build("bestsingleview", {"estimator": "lrr", "estimator__lam": 0.2})
    BestSingleView(estimator=LRR(lam=0.2))
    """
    inner = params.get("estimator")
    given = {"estimator": METHODS[inner]()} if inner else {}
    return METHODS[estimator](**given).set_params(
        **{name: value for name, value in params.items() if name != "estimator"}
    )


@lru_cache(maxsize=2)
def _loaded(name: str, options: str) -> Dataset:
    arguments = json.loads(options)
    if name == "subspaces" or arguments:
        return GENERATORS[name](**arguments)
    return load_dataset(name)


def load_source(source: Source) -> Dataset:
    """Load or generate a data set; the last ones stay in memory."""
    return _loaded(source.name, json.dumps(source.options, sort_keys=True))


# --- reading ---


def _toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no protocol {path}")
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:  # not TOML, or not UTF-8
        raise ValueError(f"{path} is not TOML: {error}") from error


def _protocol(content: dict[str, Any], path: Path) -> Protocol:
    known = ("name", "seeds", "timeout", "methods_from", "dataset", "method")
    _check_keys("a protocol", content, known, needed=("name", "seeds", "dataset"))
    name, seeds, timeout = content["name"], content["seeds"], content.get("timeout")
    if type(seeds) is not int or seeds < 1:
        raise ValueError(f"seeds must be a whole number >= 1; got {seeds!r}")
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        raise ValueError(f"timeout must be a number of seconds > 0; got {timeout!r}")
    entries = list(_tables("method", content))
    if "methods_from" in content:
        entries = [*_tables("method", _toml(path.parent / content["methods_from"])), *entries]
    if not entries:
        raise ValueError("a protocol needs at least one [[method]]")
    datasets = [_source(entry) for entry in _tables("dataset", content)]
    labels = [source.label for source in datasets]
    _check_once("data set", labels)
    methods = [_method(entry, labels, "methods_from" in content) for entry in entries]
    _check_once("method", [f"{method.name} ({method.selection})" for method in methods])
    protocol = Protocol(name, seeds, timeout, methods, datasets)
    for method, source in protocol.pairs():
        _check_settings(method, source)
    return protocol


def _source(entry: dict[str, Any]) -> Source:
    _check_keys("a [[dataset]]", entry, None, needed=("name",))
    options = {name: value for name, value in entry.items() if name not in ("name", "label")}
    name = entry["name"] if entry["name"] == "subspaces" else find_entry(entry["name"]).name
    if options and name not in GENERATORS:
        raise ValueError(f"data set {name!r} takes no {next(iter(options))!r}: only label")
    if options:
        allowed = tuple(signature(GENERATORS[name]).parameters)
        _check_keys(f"data set {name!r}", options, ("name", "label", *allowed))
        _loaded(name, json.dumps(options, sort_keys=True))  # small, and checks the values
    words = ", ".join(f"{key}={value}" for key, value in options.items())
    return Source(name, entry.get("label") or (f"{name} ({words})" if words else name), options)


def _method(entry: dict[str, Any], labels: list[str], foreign: bool) -> Method:
    known = tuple(Method.__dataclass_fields__)
    _check_keys("a [[method]]", entry, known, needed=("name", "estimator", "selection"))
    name, estimator, selection = entry["name"], entry["estimator"], entry["selection"]
    if estimator not in METHODS:
        raise ValueError(
            f"method {name!r}: no estimator is called {estimator!r}{_hint(estimator, METHODS)}"
        )
    if selection not in SELECTIONS:
        raise ValueError(
            f"method {name!r}: selection must be {' or '.join(map(repr, SELECTIONS))}; "
            f"got {selection!r}"
        )
    params, grid = entry.get("params", {}), entry.get("grid", {})
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"method {name!r}: grid.{key} must be a list of values")
        if key in params:
            raise ValueError(f"method {name!r}: {key} is both in params and in grid")
    if grid and selection != "tuned":
        raise ValueError(
            f"method {name!r}: selection {selection!r} takes no grid, only 'tuned' does"
        )
    if params.get("oracle") and selection != "tuned":
        raise ValueError(
            f"method {name!r}: oracle=true looks at the labels, so that selection must be 'tuned'"
        )
    datasets = entry.get("datasets")
    if foreign and datasets is not None:  # of the other protocol: those that are here too
        datasets = [label for label in datasets if label in labels]
    for label in datasets or []:
        if label not in labels:
            raise ValueError(
                f"method {name!r}: datasets names {label!r}, which is not a label of this "
                f"protocol{_hint(label, labels)}"
            )
    return Method(
        name, estimator, selection, _none(params), _none(grid), datasets, entry.get("paper", name)
    )


def _check_settings(method: Method, source: Source) -> None:
    """Names and values of all parameters; at least one setting."""
    who = f"method {method.name!r}"
    names = {**method.params, **method.grid}
    for name in GIVEN:
        if name in names or f"estimator__{name}" in names:
            raise ValueError(f"{who}: {name} comes from the data and the seeds, leave it out")
    inner = names.get("estimator")
    if isinstance(inner, list) or (inner is not None and inner not in METHODS):
        raise ValueError(f"{who}: params.estimator must be one of {', '.join(METHODS)}")
    model = build(method.estimator, {"estimator": inner} if inner else {})
    for name in names:
        if name not in model.get_params():
            raise ValueError(
                f"{who}: {type(model).__name__} has no parameter {name!r}"
                f"{_hint(name, model.get_params(deep=False))}"
            )
    found = settings(method, source)
    if not found:
        raise ValueError(
            f"{who} has no setting for {source.label}: n_neighbors must be below its "
            f"{source.n_samples} samples"
        )
    # Every value once, the others at their first: a product would be checked thousands of times.
    first = method.params | {name: values[0] for name, values in method.grid.items()}
    for name, values in method.grid.items() or [("", [None])]:
        for value in values:
            _check_values(build(method.estimator, first | ({name: value} if name else {})))


def _check_values(model: MultiViewClusterer) -> None:
    params = model.get_params(deep=False)
    check_params(type(model).__name__, params, model.parameter_checks())
    if isinstance(params.get("estimator"), MultiViewClusterer):
        _check_values(params["estimator"])


# --- small pieces ---


def _job(
    protocol: Protocol,
    method: Method,
    source: Source,
    params: dict[str, Any],
    seed: int,
    stage: str,
) -> Job:
    return Job(protocol.name, method, source, params, seed, stage, protocol.timeout)


def _tuning_job(protocol: Protocol, method: Method, source: Source, params: dict[str, Any]) -> Job:
    return Job(protocol.name, method, source, params, TUNE_SEED, "tune", protocol.timeout)


def _finals(
    protocol: Protocol, method: Method, source: Source, params: dict[str, Any]
) -> list[Job]:
    return [
        Job(protocol.name, method, source, params, seed, "final", protocol.timeout)
        for seed in range(protocol.seeds)
    ]


def _fits(params: Mapping[str, Any], n: int) -> bool:
    ks = [params.get("n_neighbors"), params.get("estimator__n_neighbors")]
    return all(k < n for k in ks if isinstance(k, Real))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _none(value: Any) -> Any:
    """Put None where TOML, which has none, says "None"."""
    if isinstance(value, dict):
        return {name: _none(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_none(one) for one in value]
    return None if value == "None" else value


def _plain(value: Any) -> Any:
    """The same value for 1 and 1.0, in nested lists and dictionaries too."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _tables(key: str, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    entries = content.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{key} must be written as [[{key}]]")
    return entries


def _check_keys(
    what: str,
    content: Mapping[str, Any],
    known: Sequence[str] | None,
    needed: Sequence[str] = (),
) -> None:
    for key in content:
        if known is not None and key not in known:
            raise ValueError(f"{what} has no key {key!r}{_hint(key, known)}")
    for key in needed:
        if key not in content:
            raise ValueError(f"{what} needs the key {key!r}")
    for words, (kind, keys) in KINDS.items():
        for key in keys:
            if key in content and not isinstance(content[key], kind):
                raise ValueError(f"{key!r} of {what} must be {words}; got {content[key]!r}")


def _check_once(kind: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two entries are called {kind} {name}: give each its own name")


def _hint(name: Any, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    return f", did you mean {close[0]!r}?" if close else f". Known: {', '.join(names)}"
