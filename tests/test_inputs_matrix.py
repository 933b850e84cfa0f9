"""Every kind of input at every entry point: the labels of the plain list, or one sentence."""

import copy
import re
import signal
import warnings
from contextlib import contextmanager

import anndata as ad
import dask.array as da
import mudata as md
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from polyspan import GRMSC, AnchorGRMSC, ConsensusClusterer, MeanGraph
from polyspan.cli.main import main
from polyspan.datasets import load_views, make_subspaces

SECONDS = 60  # a case takes less than one; more means that it hangs
DATA = make_subspaces(40, 3, n_features=[8, 6], random_state=0)
IDS = [f"m{i}" for i in range(40)]
SHUFFLED = np.random.default_rng(0).permutation(40)

ENTRIES = {
    "GRMSC": GRMSC(3, n_neighbors=5, random_state=0),
    "AnchorGRMSC": AnchorGRMSC(3, n_anchors=10, n_neighbors=5, random_state=0),
    "ConsensusClusterer": ConsensusClusterer(
        3, members=[MeanGraph(), MeanGraph(n_neighbors=5)], random_state=0
    ),
}


def frames():
    """Two tables whose index names the samples, the second in another order."""
    A, B = (pd.DataFrame(X, index=IDS).add_prefix("f") for X in DATA.views)
    return A, B.iloc[SHUFFLED]


def cells(frame):
    return ad.AnnData(frame.to_numpy(), obs=pd.DataFrame(index=frame.index))


def mudata():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of changes in the next version of mudata
        return md.MuData({name: cells(one) for name, one in zip("ab", frames(), strict=True)})


def annotated():
    found = cells(frames()[0])
    found.obsm["b"] = DATA.views[1].copy()
    found.layers["a"] = DATA.views[0].copy()
    return found


# What `fit` takes.
INPUTS = {
    "list": lambda: [X.copy() for X in DATA.views],
    "nested lists": lambda: [X.tolist() for X in DATA.views],
    "tuple": lambda: tuple(X.copy() for X in DATA.views),
    "dict": lambda: dict(zip("ab", DATA.views, strict=True)),
    "data set": lambda: DATA,
    "matched views": lambda: load_views(list(frames())),
    "pandas": lambda: list(frames()),
    "pandas in a dict": lambda: dict(zip("ab", frames(), strict=True)),
    "polars": lambda: [pl.DataFrame(X) for X in DATA.views],
    "pyarrow": lambda: [pa.Table.from_pandas(pd.DataFrame(X)) for X in DATA.views],
    "AnnData": lambda: [cells(frame) for frame in frames()],
    "AnnData with keys": lambda: load_views(annotated(), obsm=["b"], layers=["a"]),
    "MuData": mudata,
    "sparse": lambda: [sp.csr_array(X) for X in DATA.views],
    "dask": lambda: [da.from_array(X, chunks=(20, -1)) for X in DATA.views],
    "files": lambda: ["a.npy", "b.npy"],
    "csv files": lambda: ["a.csv", "b.csv"],
}
CHUNKS = "ConsensusClusterer", "GRMSC"  # need the views in memory
REFUSED = {("dask", "GRMSC"): "^view 0 is a dask array: call its compute"}
REFUSED |= {("files", name): r"^X names files \('a.npy', 'b.npy'\).*load_views" for name in CHUNKS}
REFUSED |= {("csv files", name): "^X names files .* use fit.load_views" for name in CHUNKS}
REFUSED |= {("csv files", "AnchorGRMSC"): "^view 0: cannot read a.csv; .*load_views"}


@contextmanager
def limited():
    """Stop what takes too long."""

    def stop(*_):
        raise TimeoutError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def contents(X):
    """Everything in an input, as arrays and lists that can be compared."""
    if isinstance(X, ad.AnnData):
        return [X.X.copy(), list(X.obs_names), list(X.obs), list(X.uns), *X.obsm.values()]
    if isinstance(X, md.MuData):
        parts = [contents(one) for one in X.mod.values()]
        return [list(X.obs_names), list(X.obs), list(X.uns), parts]
    if hasattr(X, "view_names"):
        return [contents(X.views), list(X.view_names)]
    if isinstance(X, dict):
        return [list(X), contents(list(X.values()))]
    if isinstance(X, list | tuple):
        return [contents(one) for one in X]
    if isinstance(X, pd.DataFrame):
        return [X.to_numpy().copy(), list(X.index), list(X.columns)]
    if sp.issparse(X):
        return [X.data.copy(), X.indices.copy(), X.indptr.copy()]
    return copy.deepcopy(X) if isinstance(X, str | float) else np.array(X)


def assert_same(a, b):
    if isinstance(a, list):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_array_equal(a, b)


def fitted(name, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the consensus of two has no certainty
        return copy.deepcopy(ENTRIES[name]).fit_predict(X)


@pytest.fixture(scope="module")
def plain():
    """The labels of the plain list."""
    return {name: fitted(name, list(DATA.views)) for name in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", INPUTS)
def test_fit(kind, entry, plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, X in zip("ab", DATA.views, strict=True):
        np.save(f"{name}.npy", X)
    X = INPUTS[kind]()
    before = contents(X)
    with limited():
        if wrong := REFUSED.get((kind, entry)):
            with pytest.raises(ValueError, match=wrong) as caught:
                fitted(entry, X)
            assert "\n" not in str(caught.value)
        else:
            np.testing.assert_array_equal(fitted(entry, X), plain[entry])
    assert_same(contents(X), before)


# ---- the same from the shell ---------------------------------------------------------------------


def write_csv():
    for name, frame in zip("ab", frames(), strict=True):
        frame.to_csv(f"{name}.csv", index_label="id")
    return ["a.csv", "b.csv"]


def write_arrays():
    for name, X in zip("ab", DATA.views, strict=True):
        np.save(f"{name}.npy", X)
    return ["a.npy", "b.npy"]


def write_npz():
    np.savez("both.npz", a=DATA.views[0], b=DATA.views[1])
    return ["both.npz"]


def write_sparse():
    from scipy.io import mmwrite

    for name, X in zip("ab", DATA.views, strict=True):
        mmwrite(f"{name}.mtx", sp.coo_array(X), precision=17)
    return ["a.mtx", "b.mtx"]


def write_pandas():
    for name, frame in zip("ab", frames(), strict=True):
        frame.to_parquet(f"{name}.parquet")
    return ["a.parquet", "b.parquet"]


def write_polars():
    for name, frame in zip("ab", frames(), strict=True):
        table = pl.from_pandas(frame.reset_index(names="id"))
        table.write_parquet(f"{name}.parquet")
    return ["a.parquet", "b.parquet"]


def write_anndata():
    for name, frame in zip("ab", frames(), strict=True):
        cells(frame).write_h5ad(f"{name}.h5ad")
    return ["a.h5ad", "b.h5ad"]


def write_keys():
    annotated().write_h5ad("both.h5ad")
    return ["both.h5ad", "--obsm", "b", "--layer", "a"]


def write_mudata():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mudata().write("both.h5mu")
    return ["both.h5mu"]


def write_dask():
    da.from_array(DATA.views[0], chunks=(20, -1)).to_zarr("a.zarr")
    return ["a.zarr"]


FILES = {
    "lists": (write_arrays, None),
    "dicts": (write_npz, None),
    "pandas": (write_pandas, None),
    "polars": (write_polars, None),
    "AnnData": (write_anndata, None),
    "AnnData with keys": (write_keys, None),
    "MuData": (write_mudata, None),
    "sparse": (write_sparse, None),
    "files": (write_csv, None),
    "dask": (write_dask, r"^polyspan: a.zarr is not a supported file: its name must end in .*\n$"),
}
METHOD = ["--method", "grmsc", "--clusters", "3", "--set", "n_neighbors=5"]


@pytest.mark.parametrize("kind", FILES)
def test_command_line(kind, plain, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write, wrong = FILES[kind]
    files = write()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with limited():
        code = main(["fit", *files, *METHOD])
    assert {path: path.read_bytes() for path in before} == before
    if wrong:
        assert code == 2
        assert re.search(wrong, capsys.readouterr().err)
        return
    assert code == 0
    found = pd.read_csv("labels.csv")
    np.testing.assert_array_equal(found["cluster"], plain["GRMSC"])
    if kind in ("pandas", "polars", "AnnData", "MuData", "files"):
        assert found.iloc[:, 0].tolist() == IDS


@pytest.mark.slow
def test_the_limit_stops_what_hangs(monkeypatch):
    monkeypatch.setattr(f"{__name__}.SECONDS", 1)
    with pytest.raises(TimeoutError, match="more than 1 s"), limited():
        signal.pause()
