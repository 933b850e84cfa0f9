"""Fitted estimators in files without pickle."""

import json
import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.cluster import SpectralClustering
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from polyspan import (
    GRMSC,
    LRR,
    METHODS,
    AnchorGRMSC,
    BestSingleView,
    ConcatKMeans,
    ConsensusClusterer,
    load_model,
    save_model,
)
from polyspan.datasets import make_subspaces
from polyspan.graphs.proximity import first_order
from polyspan.persistence import checksum


def planted(n=45):
    data = make_subspaces(n, 3, n_features=[6, 8], subspace_dim=2, noise=0.05, random_state=0)
    return data.views


def kept(model):
    """What is saved of a model: all but the views that it was fitted on."""
    return {name: value for name, value in vars(model).items() if name != "_fitted_on"}


def assert_same(a, b):
    """Equal in value and type, all the way down."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for one, two in zip(a, b, strict=True):
            assert_same(one, two)
    elif sp.issparse(a):
        assert a.dtype == b.dtype
        assert_array_equal(a.toarray(), b.toarray())
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert_array_equal(a, b)
    elif isinstance(a, np.random.RandomState):
        assert_same(a.get_state(), b.get_state())
    elif hasattr(a, "get_params"):
        assert_same(kept(a), kept(b))
    else:
        assert a == b


@pytest.mark.parametrize("name", METHODS)
def test_every_method_comes_back(name, tmp_path):
    views = planted()[: 1 if get_tags(METHODS[name]()).single_view else 2]
    model = METHODS[name](3, random_state=0) if name != "bestsingleview" else BestSingleView(LRR(3))
    model.fit(views)
    again = load_model(save_model(model, tmp_path / "model.npz"))
    assert_same(kept(again), kept(model))
    if hasattr(model, "predict"):
        assert_array_equal(again.predict(views), model.predict(views))
    assert_array_equal(again.set_params(random_state=1).fit(views).labels_.shape, (45,))


MODELS = {
    "sparse affinity": GRMSC(3, affinity="sparse", random_state=0),
    "standardized": GRMSC(3, scale="standard+unit", random_state=0),
    "scaled each": GRMSC(3, scale=("unit", "standard"), random_state=0),
    "scaled each, a list": AnchorGRMSC(3, scale=[None, "standard"], random_state=0),
    "RandomState": GRMSC(3, random_state=np.random.RandomState(5)),
    "weights": GRMSC(3, view_weights=(1.0, np.float32(0.5))),
    "no weight": GRMSC(3, view_weights=np.array([0.0, 1.0])),
    "graphs": GRMSC(3, graphs=[sp.csr_array(first_order(X, 9)[0]) for X in planted()]),
    "sparse matrices": GRMSC(3, graphs=[sp.csr_matrix(first_order(X, 9)[0]) for X in planted()]),
    "graphs by name": GRMSC(3, graphs={"0": np.ones((45, 45)), "1": np.ones((45, 45))}),
    "numpy numbers": GRMSC(np.int64(3), lam1=np.float64(7.0), max_iter=np.int32(40)),
    "nested": BestSingleView(LRR(3, lam=0.3), random_state=np.random.RandomState(1)),
    "one iteration": GRMSC(3, max_iter=1),
    "consensus": ConsensusClusterer(members=[GRMSC(), ConcatKMeans()], random_state=0),
}


@pytest.mark.parametrize("case", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_settings_come_back(case, tmp_path):
    model = MODELS[case]
    model.fit({0: planted()[0], 1: planted()[1]} if case != "graphs by name" else
              dict(zip("01", planted(), strict=True)))  # fmt: skip
    again = load_model(save_model(model, tmp_path / "model.npz"))
    assert_same(kept(again), kept(model))
    if hasattr(model, "predict"):
        assert_array_equal(again.predict(planted()), model.predict(planted()))


def test_columns_and_kernels_come_back(tmp_path):
    whole = pd.DataFrame(np.hstack(planted())).rename(columns=lambda i: f"f{i}")
    cut = GRMSC(3, views=[slice(0, 6), list(range(6, 14))], random_state=0).fit(whole)
    again = load_model(save_model(cut, tmp_path / "cut.npz"))
    assert_same(kept(again), kept(cut))
    assert_array_equal(again.predict(whole), cut.predict(whole))
    kernels = [X @ X.T for X in planted()]
    model = GRMSC(3, precomputed="kernel", random_state=0).fit(kernels)
    again = load_model(save_model(model, tmp_path / "kernel.npz"))
    assert_array_equal(again.predict(kernels), model.predict(kernels))


def test_shared_parts_are_stored_once(tmp_path):
    model = BestSingleView(LRR(3, random_state=0)).fit(planted())
    again = load_model(save_model(model, tmp_path / "model.npz"))
    assert again.best_estimator_ is again.estimators_[again.best_view_]
    assert again.labels_ is again.best_estimator_.labels_


def test_arrays_of_other_libraries_become_numpys(tmp_path):
    strict = pytest.importorskip("array_api_strict")
    model = GRMSC(3, random_state=0).fit([strict.asarray(X) for X in planted()])
    again = load_model(save_model(model, tmp_path / "model.npz"))
    assert_array_equal(again.representation_, np.from_dlpack(model.representation_))
    assert_array_equal(again.predict(planted()), model.predict(planted()))


# ---- what is refused, and what is left behind --------------------------------------------------


def fitted():
    return GRMSC(3, random_state=0).fit(planted())


def test_nothing_is_overwritten_unless_forced(tmp_path):
    path = tmp_path / "model.npz"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"model.npz exists: choose another name, or .*force"):
        save_model(fitted(), path)
    assert path.read_text() == "mine"
    assert load_model(save_model(fitted(), path, force=True)).n_clusters == 3
    assert os.listdir(tmp_path) == ["model.npz"]


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"

    def full(file, **arrays):
        file.write(b"half of it")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="disk full"):
        save_model(fitted(), path)
    assert os.listdir(tmp_path) == []


def test_models_that_cannot_be_saved(tmp_path):
    class Mine(GRMSC):
        pass

    path = tmp_path / "model.npz"
    with pytest.raises(NotFittedError, match="This GRMSC instance is not fitted yet"):
        save_model(GRMSC(3), path)
    with pytest.raises(TypeError, match=r"^A Mine cannot be saved: only a ConsensusClusterer and"):
        save_model(Mine(3).fit(planted()), path)
    other = BestSingleView(SpectralClustering(3)).fit(planted())
    match = "^BestSingleView: estimator is a SpectralClustering, which cannot be saved"
    with pytest.raises(TypeError, match=match):
        save_model(other, path)
    with pytest.raises(ValueError, match=r"model\.pkl: the name of a saved model must end in"):
        save_model(fitted(), tmp_path / "model.pkl")
    assert os.listdir(tmp_path) == []


def test_files_that_are_something_else(tmp_path):
    path = tmp_path / "model.npz"
    match = r"model\.npz is not a model saved by polyspan.save_model, or it is damaged\.$"
    whole = save_model(fitted(), tmp_path / "whole.npz").read_bytes()
    np.save(tmp_path / "array.npy", np.eye(2))
    np.savez(tmp_path / "arrays.npz", a=np.eye(2))
    np.savez(tmp_path / "pickled.npz", polyspan=np.array([{}], dtype=object))
    for content in (
        b"",
        b"a,b\n1,2\n",
        b"\x80\x04N.",  # a pickle
        whole[: len(whole) // 2],
        (tmp_path / "array.npy").read_bytes(),
        (tmp_path / "arrays.npz").read_bytes(),
        (tmp_path / "pickled.npz").read_bytes(),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=match):
            load_model(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_model(tmp_path / "nowhere.npz")


def sign(text, arrays):
    """Give the changed contents of a file their checksum, as whoever wants to do harm can."""
    rest = {name: one for name, one in arrays.items() if name != "polyspan"}
    text["sha256"] = checksum({k: one for k, one in text.items() if k != "sha256"}, rest)
    arrays["polyspan"] = np.array(json.dumps(text))


def rewritten(path, change):
    """The same file with another JSON text."""
    with np.load(path) as file:
        arrays = dict(file)
    text = json.loads(str(arrays["polyspan"]))
    change(text)
    sign(text, arrays)
    np.savez(path, **arrays)
    return path


SAVED = Path(__file__).with_name("saved")


@pytest.mark.parametrize("kind", ["consensus", "kernel"])
def test_models_of_the_version_before_predict_the_same(kind):
    known = json.loads((SAVED / "predicted-format-1.json").read_text("utf-8"))
    model = load_model(SAVED / f"{kind}-format-1.npz")
    assert model.view_names_ == ["rna", "protein"]
    assert [view.key for view in model.known_views()] == ["rna", "protein"]
    new = known["views" if kind == "consensus" else "kernels"]
    views = {name: np.array(new[name]) for name in ("protein", "rna")}  # matched by name
    how = {"abstain": 0} if kind == "consensus" else {}
    assert model.predict(views, **how).tolist() == known[kind]
    if kind == "consensus":
        frame = model.labels_frame()
        assert (frame["sample"].tolist(), frame["cluster"].tolist()) == (
            known["ids"],
            known["labels"],
        )
        assert model.known_views()[0].columns == ["g0", "g1", "g2", "g3"]


CHANGES = {
    "newer": (lambda t: t.update(format=4, version="9.1"), r"by polyspan 9\.1 in a newer format"),
    "class": (
        lambda t: t["estimators"][0].update({"class": "Popen"}),
        "holds a 'Popen', which this version of polyspan",
    ),
    "param": (
        lambda t: t["estimators"][0]["params"].update(new=1),
        "the parameter 'new', which",
    ),
    "method": (lambda t: t["estimators"][0]["fitted"].update(fit=1), "is not a model saved by"),
    "private": (lambda t: t["estimators"][0]["fitted"].update(__class__=1), "is not a model"),
    "hidden method": (lambda t: t["estimators"][0]["fitted"].update(_run=1), "is not a model"),
    "hidden name": (lambda t: t["estimators"][0]["fitted"].update(_mine=1), "is not a model"),
    "no name": (lambda t: t["estimators"][0]["fitted"].update({"a b_": 1}), "is not a model"),
    "form": (
        lambda t: t["estimators"][0]["fitted"].update(x_={"eval": "1"}),
        "is not a model",
    ),
    "array": (
        lambda t: t["estimators"][0]["fitted"].update(x_={"array": "b"}),
        "is not a model",
    ),
    "number": (lambda t: t.update(model={"estimator": 5}), "is not a model"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_files_that_are_not_trusted(case, tmp_path):
    change, match = CHANGES[case]
    path = rewritten(save_model(fitted(), tmp_path / "model.npz"), change)
    with pytest.raises(ValueError, match=match) as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_file_holds_no_pickle(tmp_path):
    path = save_model(fitted(), tmp_path / "model.npz")
    with zipfile.ZipFile(path) as file:
        assert all(name.endswith(".npy") for name in file.namelist())
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)


def wrong_graph(text, arrays, how):
    """Point the indices of the sparse affinity somewhere else."""
    form = next(
        form
        for form in text["estimators"][0]["fitted"].values()
        if isinstance(form, dict) and "csr_array" in form
    )
    _, indices, ends = form["csr_array"]
    if how == "indices":
        arrays[indices] = np.full_like(arrays[indices], 10**9)
    else:
        arrays[ends] = arrays[ends].copy()
        arrays[ends][1] = 10**6


@pytest.mark.parametrize("how", ["indices", "ends"])
def test_sparse_matrices_with_wrong_indices(how, tmp_path):
    model = GRMSC(3, affinity="sparse", random_state=0).fit(planted())
    path = save_model(model, tmp_path / "model.npz")
    with np.load(path) as file:
        arrays = dict(file)
    text = json.loads(str(arrays["polyspan"]))
    wrong_graph(text, arrays, how)
    sign(text, arrays)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"is not a model saved by .* or it is damaged"):
        load_model(path)


def deep(path):
    """So deep that a reader which calls itself gives up."""
    with np.load(path) as file:
        arrays = dict(file)
    text = str(arrays["polyspan"])
    at = text.index('"model": {"estimator": 0}')
    deeper = '"model": ' + '{"tuple": [' * 100_000 + "1" + "]}" * 100_000
    text = text[:at] + deeper + text[at + len('"model": {"estimator": 0}') :]
    np.savez(path, **(arrays | {"polyspan": np.array(text)}))


def patched(old, new):
    def change(path):
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new))

    return change


def other_packing(path):
    """A way to pack that Python does not know."""
    content = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = content.find(mark)
        while at >= 0:
            content[at + place] = 99
            at = content.find(mark, at + 1)
    path.write_bytes(bytes(content))


def packed_wrongly(path):
    with np.load(path) as file:
        arrays = dict(file)
    np.savez_compressed(path, **arrays)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        start = file.infolist()[0].header_offset
    content[start + 60 : start + 90] = bytes(30)
    path.write_bytes(bytes(content))


HARM = {
    "RecursionError": deep,
    "NotImplementedError": other_packing,
    "zlib.error": packed_wrongly,
    "huge array": patched(b"'shape': (45,)", b"'shape': (1<9)"),
}


@pytest.mark.parametrize("how", HARM)
def test_whatever_is_wrong_gets_one_sentence(how, tmp_path):
    path = save_model(fitted(), tmp_path / "model.npz")
    HARM[how](path)
    with pytest.raises(ValueError, match=r"is not a model saved by .* or it is damaged") as caught:
        load_model(path)
    assert str(path) in str(caught.value)


def test_a_model_larger_than_memory(tmp_path, monkeypatch):
    path = save_model(fitted(), tmp_path / "model.npz")
    monkeypatch.setattr("polyspan.runtime.memory.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"model\.npz holds about .* are free"):
        load_model(path)


def test_many_threads_save_one_path(tmp_path):
    """Every load sees one whole model, whichever is saved at the time."""
    models = [fitted().set_params(random_state=i) for i in range(3)]
    path = save_model(models[0], tmp_path / "model.npz")
    with ThreadPoolExecutor(3) as pool:
        saves = [pool.submit(save_model, one, path, force=True) for one in models * 5]
        seen = {load_model(path).random_state for _ in range(20)}
        for one in saves:
            one.result()
    assert seen <= {0, 1, 2}
    assert [one.name for one in tmp_path.iterdir()] == ["model.npz"]
