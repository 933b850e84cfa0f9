"""Save a fitted estimator and load it again, without pickle: loading a file runs none of its code.

The file is a NumPy .npz: arrays, and a JSON text that describes them and holds everything else. It
is read with ``allow_pickle=False``, and only `ConsensusClusterer` and the classes in
`polyspan.METHODS` are created from it.
"""

import ast
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj
from sklearn.utils.validation import check_is_fitted

from polyspan.atomic import replacing
from polyspan.base import MultiViewClusterer, fitted_names
from polyspan.io.safety import check_size, check_sparse
from polyspan.methods import METHODS
from polyspan.runtime.arrays import to_numpy
from polyspan.selection import ConsensusClusterer

CLASSES: dict[str, type[MultiViewClusterer]] = {
    "ConsensusClusterer": ConsensusClusterer,
    **{cls.__name__: cls for cls in METHODS.values()},
}
# Increased whenever older versions cannot read the file; 1 had quotes in view names, 2 no checksum.
FORMAT = 3
_TEXT = "polyspan"  # name of the JSON text among the arrays


def save_model(model: MultiViewClusterer, path: str | Path, *, force: bool = False) -> Path:
    """Write a fitted estimator to one .npz file, whole or not at all.

    Parameters
    ----------
    model : estimator
        A fitted `ConsensusClusterer` or method of `polyspan.METHODS`. Arrays of other libraries are
        stored as NumPy arrays.
    path : str or Path
        The file, ending in ``.npz``.
    force : bool, default=False
        Replace the file if it exists.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from polyspan import GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> views = make_subspaces(n_samples=60, n_clusters=3, random_state=0).views
    >>> model = GRMSC(n_clusters=3, random_state=0).fit(views)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load_model(save_model(model, f"{folder}/model.npz"))
    >>> bool(np.all(again.predict(views) == model.predict(views)))
    True
    """
    path = Path(path)
    _check_class(model)
    check_is_fitted(model, "labels_")
    if path.suffix != ".npz":
        raise ValueError(f"{path}: the name of a saved model must end in .npz; rename it.")
    check = None if force else _check_absent
    if check:
        check(path)
    from polyspan import __version__  # not known yet when this module is imported

    writer = _Writer()
    top = writer.put(model, "the model")
    text = {"format": FORMAT, "version": __version__, "model": top, "estimators": writer.estimators}
    text["sha256"] = checksum(text, writer.arrays)
    contents: dict[str, Any] = {_TEXT: np.array(json.dumps(text)), **writer.arrays}
    with replacing(path, check) as part, open(part, "wb") as file:
        np.savez(file, **contents)
    return path


def load_model(path: str | Path) -> Any:
    """Read an estimator written by `save_model`; it predicts the same labels as the saved one.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    estimator

    Raises
    ------
    ValueError
        The file is not a saved model, has a newer format, or is damaged.
    """
    path = Path(path)
    try:
        check_size(path, ".npz")
        with np.load(path, allow_pickle=False) as file:
            text = json.loads(str(file[_TEXT]))
            if text["format"] > FORMAT:
                raise _Refused(
                    f"was saved by polyspan {text['version']} in a newer format: update polyspan "
                    "to read it."
                )
            arrays = {name: file[name] for name in file.files if name != _TEXT}
            written = text.pop("sha256", None)
            if text["format"] > 2 and written != checksum(text, arrays):
                raise ValueError("changed")
            reader = _Reader(text["estimators"], arrays, text["format"])
        return reader.get(text["model"])
    except _Refused as error:
        raise ValueError(f"{path} {error}") from None
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except MemoryError as error:
        told = str(error).startswith(str(path))
        raise MemoryError(
            str(error) if told else f"{path} does not fit in memory, or it is damaged."
        ) from None
    except Exception:  # a damaged file may raise any exception
        raise ValueError(
            f"{path} is not a model saved by polyspan.save_model, or it is damaged."
        ) from None


def _check_absent(path: Path) -> None:
    if path.exists():
        raise FileExistsError(f"{path} exists: choose another name, or pass force=True.")


def checksum(text: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """The SHA-256 of all that is in a file: against damage and edits, not against an attacker.

    Examples
    --------
    >>> checksum({"format": 3}, {"a": np.zeros(2)})[:8]
    '13b55da9'
    """
    found = hashlib.sha256(json.dumps(text, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


class _Refused(Exception):
    """A file that can be read but is refused; the message goes after the file's name."""


def _check_class(model: Any) -> None:
    if type(model) not in CLASSES.values():
        raise TypeError(
            f"A {type(model).__name__} cannot be saved: only a ConsensusClusterer and the methods "
            "in polyspan.METHODS can."
        )


class _Writer:
    """Turn values into JSON; arrays and estimators are stored apart, each once, and numbered."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.estimators: list[dict[str, Any]] = []
        self._known: dict[int, tuple[Any, Any]] = {}  # by id; the object is kept so the id stays

    def put(self, value: Any, where: str) -> Any:
        """Return the JSON form of a value."""
        if value is None or isinstance(value, bool | int | str) or type(value) is float:
            return value
        if id(value) not in self._known:
            self._known[id(value)] = value, self._new(value, where)
        return self._known[id(value)][1]

    def _new(self, value: Any, where: str) -> Any:
        if isinstance(value, list):
            return [self.put(one, where) for one in value]
        if isinstance(value, tuple):
            return {"tuple": [self.put(one, where) for one in value]}
        if isinstance(value, Mapping):
            pairs = [[self.put(a, where), self.put(b, where)] for a, b in value.items()]
            return {"dict": pairs}
        if isinstance(value, slice):
            return {"slice": [self.put(x, where) for x in (value.start, value.stop, value.step)]}
        if isinstance(value, np.random.RandomState):
            kind, *state = value.get_state(legacy=True)
            if kind == "MT19937":
                return {"RandomState": [self.put(x, where) for x in state]}
        if sp.issparse(value):
            return self._sparse(value)
        if isinstance(value, MultiViewClusterer):
            return self._estimator(value)
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value))}
        if is_array_api_obj(value):
            array = to_numpy(value)
            if array.dtype != object:
                return {"array": self._array(array)}
            if all(isinstance(one, str) for one in array.flat):  # names of features
                return {"strings": array.tolist()}
        raise TypeError(f"{where} is a {type(value).__name__}, which cannot be saved.")

    def _array(self, array: np.ndarray) -> str:
        name = f"array{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def _sparse(self, matrix: Any) -> dict[str, Any]:
        parts = matrix.tocsr()
        kind = "array" if isinstance(matrix, sp.sparray) else "matrix"
        names = [self._array(part) for part in (parts.data, parts.indices, parts.indptr)]
        return {f"csr_{kind}": names, "shape": list(map(int, matrix.shape))}

    def _estimator(self, model: MultiViewClusterer) -> dict[str, int]:
        _check_class(model)
        number = len(self.estimators)
        self.estimators.append({})  # takes its place before the estimators inside it
        name, params = type(model).__name__, model.get_params(deep=False)
        fitted = {key: vars(model)[key] for key in vars(model) if key in fitted_names(type(model))}
        self.estimators[number] = {
            "class": name,
            "params": {key: self.put(x, f"{name}: {key}") for key, x in params.items()},
            "fitted": {key: self.put(x, f"{name}: {key}") for key, x in fitted.items()},
        }
        return {"estimator": number}


class _Reader:
    """Turn the JSON of `_Writer` back into values."""

    def __init__(
        self, estimators: list[Any], arrays: dict[str, np.ndarray], format: int = FORMAT
    ) -> None:
        self.arrays, self._states, self._format = arrays, estimators, format
        self._made: dict[int, Any] = {}

    def get(self, form: Any) -> Any:
        """Return the value of a JSON form."""
        if isinstance(form, list):
            return [self.get(one) for one in form]
        if not isinstance(form, dict):
            return form
        kind, content = next(iter(form.items()))
        match kind:
            case "tuple":
                return tuple(self.get(one) for one in content)
            case "dict":
                return {self.get(a): self.get(b) for a, b in content}
            case "slice":
                return slice(*map(self.get, content))
            case "RandomState":
                state = np.random.RandomState()
                state.set_state(("MT19937", *map(self.get, content)))
                return state
            case "scalar":
                return self.arrays[content][()]
            case "array":
                return self.arrays[content]
            case "strings":
                return np.array(content, dtype=object)
            case "csr_array" | "csr_matrix":
                make = sp.csr_array if kind == "csr_array" else sp.csr_matrix
                parts = tuple(self.arrays[x] for x in content)
                return check_sparse(make(parts, shape=tuple(form["shape"])), "its graph")
            case "estimator":
                return self._estimator(content)
        raise ValueError(kind)

    def _estimator(self, number: int) -> Any:
        if number in self._made:
            return self._made[number]
        state = self._states[number]
        if state["class"] not in CLASSES:
            raise _Refused(
                f"holds a {state['class']!r}, which this version of polyspan does not have: "
                "update polyspan, or save the model again."
            )
        cls = CLASSES[state["class"]]
        params = {key: self.get(form) for key, form in state["params"].items()}
        if unknown := set(params) - set(cls().get_params(deep=False)):
            raise _Refused(
                f"holds a {state['class']} with the parameter {sorted(unknown)[0]!r}, which "
                "this version of polyspan does not have: update polyspan."
            )
        model = self._made[number] = cls(**params)
        for key, form in state["fitted"].items():
            if key not in fitted_names(cls):  # a file may set fitted attributes only
                raise ValueError(key)
            setattr(model, key, self.get(form))
        if self._format == 1:
            _name_views(model)
        return model


def _name_views(model: Any) -> None:
    """Translate what a model of format 1 knows of views: names were in quotes, "'rna'"."""

    def name(quoted: str) -> str:
        return str(ast.literal_eval(quoted)) if quoted[:1] in ("'", '"') else quoted

    known = vars(model)
    if "view_names_" in known:
        known["view_names_"] = [name(view) for view in known["view_names_"]]
    if columns := known.get("_view_columns"):
        known["_view_columns"] = {name(view): columns[view] for view in columns}
