"""A protocol defines a comparison: methods x data sets x parameter grid x seeds.

It is a TOML file::

    name = "mine"
    seeds = 10                  # runs with the seeds 0, 1, ..., 9, the same for every method
    timeout = 600               # seconds per job, including loading the data; default: no limit
    order = "shuffled"          # of the samples, the default; or "sorted" by class, or "file"

    [[dataset]]
    name = "ngs"                # from `polyspan data list`; or "subspaces", which is generated
    label = "NGs"               # how it is called in tables; default: name

    [[dataset]]
    name = "digits"
    n_samples = 200             # argument of load_digits_views ("subspaces": of make_subspaces)

    [[method]]
    name = "GRMSC"              # how it is called in tables
    estimator = "grmsc"         # a name in polyspan.METHODS
    selection = "tuned"         # "default", "tuned", "nothing to tune" or "label-free"
    params = { orientation = "published" }
    grid = { lam1 = [1.0, 100.0], n_neighbors = [10, 30] }
    datasets = ["NGs"]          # only these; default: all
    paper = "GRMSC"             # the row of the paper to compare with; default: name

``default`` is one setting for all data. ``tuned`` runs the grid with one seed, then the 20 settings
with the best NMI with two more (this uses the labels!), picks for each data set the one with the
best mean and runs all seeds there. ``nothing to tune`` is a method without parameters that matter,
which is compared with the tuned ones. ``label-free`` is a method that chooses its own setting.

Files are often sorted by class, so every run shuffles the samples by its seed. Where a method has
the same solution for every seed and every order (`polyspan.base.ViewTags`), all seeds share the
solution for the shuffled order of seed 0 and repeat only k-means; one job in twenty solves afresh
in its own order, as a check. The column ``solve`` of a row says which: "shared" or "own".

TOML has no None: write "None". A parameter of an inner estimator is written as in scikit-learn,
``{ estimator = "lrr", estimator__lam = 0.5 }``. ``methods_from = "other.toml"`` adds the methods
of another protocol. Values of n_neighbors that are not below the number of samples are left out.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from numbers import Real
from pathlib import Path
from typing import Any

from harness.plan import (
    GENERATORS,
    ORDERS,
    SELECTIONS,
    Method,
    Protocol,
    Source,
    build,
    load_source,
    settings,
)
from polyspan.base import MultiViewClusterer
from polyspan.datasets.registry import find_entry
from polyspan.inputs.params import check_params
from polyspan.methods import METHODS
from polyspan.runtime.messages import unknown_name

GIVEN = ("n_clusters", "random_state")  # these come from the data and the seed
KINDS: dict[str, tuple[type, tuple[str, ...]]] = {
    "a table": (dict, ("params", "grid")),
    "a list": (list, ("datasets",)),
    "a text": (str, ("name", "label", "estimator", "selection", "paper", "methods_from")),
}


class UnknownNameError(ValueError):
    """The protocol has no method or data set of that name."""


def read_protocol(path: str | Path) -> Protocol:
    """Read and check a protocol; every error that can be foreseen is raised here.

    Parameters
    ----------
    path : path
        A TOML file, see `harness.protocol`.

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
    >>> from harness import read_protocol
    >>> from harness.jobs import count_jobs
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
    """Keep only these methods and data sets of a protocol; an empty list keeps all.

    Data sets may be given by name or label, methods by their name in tables or by estimator.
    """
    for kind, wanted, known in (
        ("method", methods, [(m.name, m.estimator) for m in protocol.methods]),
        ("data set", datasets, [(s.label, s.name) for s in protocol.datasets]),
    ):
        for name in wanted:
            if not any(name in names for names in known):
                first = list(dict.fromkeys(names[0] for names in known))
                where = f"the protocol {protocol.name!r}"
                raise UnknownNameError(unknown_name(kind, name, first, where=where))
    kept = replace(
        protocol,
        methods=[m for m in protocol.methods if not methods or {m.name, m.estimator} & {*methods}],
        datasets=[s for s in protocol.datasets if not datasets or {s.label, s.name} & {*datasets}],
    )
    if not kept.pairs():
        raise UnknownNameError("none of these methods is run on any of these data sets")
    return kept


def _toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no protocol {path}")
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:  # not TOML, or not UTF-8
        raise ValueError(f"{path} is not TOML: {error}") from error


def _protocol(content: dict[str, Any], path: Path) -> Protocol:
    known = ("name", "seeds", "timeout", "order", "methods_from", "dataset", "method")
    _check_keys("a protocol", content, known, needed=("name", "seeds", "dataset"))
    name, seeds, timeout = content["name"], content["seeds"], content.get("timeout")
    if type(seeds) is not int or seeds < 1:
        raise ValueError(f"seeds must be a whole number >= 1; got {seeds!r}")
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        raise ValueError(f"timeout must be a number of seconds > 0; got {timeout!r}")
    order = content.get("order", ORDERS[0])
    if order not in ORDERS:
        raise ValueError(f"order must be {' or '.join(map(repr, ORDERS))}; got {order!r}")
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
    protocol = Protocol(name, seeds, timeout, methods, datasets, order)
    for method, source in protocol.pairs():
        _check_settings(method, source)
    return protocol


def _source(entry: dict[str, Any]) -> Source:
    _check_keys("a [[dataset]]", entry, None, needed=("name",))
    options = {name: value for name, value in entry.items() if name not in ("name", "label")}
    name = entry["name"] if entry["name"] == "subspaces" else find_entry(entry["name"]).name
    if name != "subspaces" and not find_entry(name).classes:
        raise ValueError(f"data set {name!r} has no classes, so no clustering of it can be scored")
    if options and name not in GENERATORS:
        raise ValueError(f"data set {name!r} takes no {next(iter(options))!r}, only 'label'")
    words = ", ".join(f"{key}={value}" for key, value in options.items())
    source = Source(name, entry.get("label") or (f"{name} ({words})" if words else name), options)
    if options:
        allowed = tuple(signature(GENERATORS[name]).parameters)
        _check_keys(f"data set {name!r}", options, ("name", "label", *allowed))
        load_source(source)  # quick, and it checks the values
    return source


def _method(entry: dict[str, Any], labels: list[str], foreign: bool) -> Method:
    known = tuple(Method.__dataclass_fields__)
    _check_keys("a [[method]]", entry, known, needed=("name", "estimator", "selection"))
    name, estimator, selection = entry["name"], entry["estimator"], entry["selection"]
    if estimator not in METHODS:
        raise ValueError(f"method {name!r}: {unknown_name('estimator', estimator, METHODS)}")
    if selection not in SELECTIONS:
        raise ValueError(
            f"method {name!r}: selection must be {' or '.join(map(repr, SELECTIONS))}; "
            f"got {selection!r}"
        )
    params, grid = dict(entry.get("params", {})), entry.get("grid", {})
    if isinstance(inner := params.get("estimator"), str):
        params["estimator"] = inner.lower()  # one spelling, and so one key
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"method {name!r}: grid.{key} must be a list of values")
        if key in params:
            raise ValueError(f"method {name!r}: {key} is both in params and in grid")
    if grid and selection != "tuned":
        raise ValueError(
            f"method {name!r}: selection {selection!r} takes no grid, only 'tuned' does"
        )
    if selection == "tuned" and not grid:
        raise ValueError(
            f"method {name!r}: selection 'tuned' needs a grid; without one it is 'default' or "
            "'nothing to tune'"
        )
    if params.get("oracle") and selection != "tuned":
        raise ValueError(
            f"method {name!r}: oracle=true uses the labels, so selection must be 'tuned'"
        )
    datasets = entry.get("datasets")
    if foreign and datasets is not None:  # from the other protocol: keep those that are here too
        datasets = [label for label in datasets if label in labels]
    for label in datasets or []:
        if label not in labels:
            where = f"method {name!r}: datasets: the protocol"
            raise ValueError(unknown_name("label", label, labels, where=where))
    return Method(
        name,
        estimator.lower(),
        selection,
        _none(params),
        _none(grid),
        datasets,
        entry.get("paper", name),
    )


def _check_settings(method: Method, source: Source) -> None:
    """Check the names and values of all parameters, and that there is at least one setting."""
    who = f"method {method.name!r}"
    names = {**method.params, **method.grid}
    for name in GIVEN:
        if name in names or f"estimator__{name}" in names:
            raise ValueError(f"{who}: {name} comes from the data and the seeds: leave it out")
    inner = names.get("estimator")
    if isinstance(inner, list) or (inner is not None and inner not in METHODS):
        raise ValueError(f"{who}: params.estimator must be one of {', '.join(METHODS)}")
    model = build(method.estimator, {"estimator": inner} if inner else {})
    for name in names:
        if name not in model.get_params():
            where = f"{who}: {type(model).__name__}"
            known = model.get_params(deep=False)
            raise ValueError(unknown_name("parameter", name, known, where=where))
    found = settings(method, source)
    if not found:
        raise ValueError(
            f"{who} has no setting for {source.label}: n_neighbors must be below its "
            f"{source.n_samples} samples"
        )
    # Check each value once, with the others at their first: a grid may have thousands of settings.
    first = method.params | {name: values[0] for name, values in method.grid.items()}
    for name, values in method.grid.items() or [("", [None])]:
        for value in values:
            _check_values(build(method.estimator, first | ({name: value} if name else {})))


def _check_values(model: MultiViewClusterer) -> None:
    params = model.get_params(deep=False)
    check_params(type(model).__name__, params, model.parameter_checks())
    if isinstance(params.get("estimator"), MultiViewClusterer):
        _check_values(params["estimator"])


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _none(value: Any) -> Any:
    """Replace "None" by None, which TOML does not have."""
    if isinstance(value, dict):
        return {name: _none(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_none(one) for one in value]
    return None if value == "None" else value


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
            raise ValueError(unknown_name("key", key, known, where=what))
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
