"""Call the library with drawn, mostly hostile input for some minutes, and report what goes wrong.

    make fuzz MINUTES=15          or: python tests/fuzz.py --minutes 15 --seed 0
    python tests/fuzz.py --seed 0 --only 123        the same call again, alone, with its traceback

Call i of a seed is always the same one. A call may succeed or raise one of `ALLOWED`, in one line
of at least `WORDS` words. What is reported, and makes the exit code 1:

- crash: the process died (calls run in a child, which is started again);
- hang: a call took more than `LIMIT` seconds;
- unclear: another exception, or one without a sentence;
- unsteady: the same fit with the same seed gave other labels, or the same values in another
  container, file or order did, or a call changed a model that it should have left alone;
- changed: the input was modified.
"""

import argparse
import faulthandler
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

LIMIT = 90  # seconds for one call; damaged HDF5 files are given up after 60
WORDS = 3  # the shortest sentence
ALLOWED = (ValueError, TypeError, MemoryError, OSError, ImportError)
# They belong to the allowed types, but nobody wrote their words for a user.
FOREIGN = (np.linalg.LinAlgError, UnicodeError, json.JSONDecodeError)


class Wrong(Exception):
    """What a call must not do; the first argument is the kind."""


# ---- views -------------------------------------------------------------------------------------


def draw_view(rng, n):
    """Samples with ties, duplicates, zeros, extreme sizes or values that are no numbers."""
    d = int(rng.integers(1, 7))
    kind = rng.choice(["normal", "ties", "positive", "copies", "extreme", "rank one", "counts",
                       "ranks", "rare"])  # fmt: skip
    X = rng.normal(size=(n, d))
    if kind == "ties":
        X = rng.integers(-1, 2, size=(n, d)).astype(float)
    elif kind == "positive":
        X = np.abs(X)
    elif kind == "copies":
        X = X[rng.integers(0, max(2, n // 4), size=n)]
    elif kind == "extreme":
        X = X * 10.0 ** rng.integers(-200, 200)
    elif kind == "rank one":
        X = np.outer(X[:, 0], X[0])
    elif kind == "counts":
        X = rng.poisson(1.0, size=(n, d)).astype(float)
    elif kind == "ranks":
        X = np.argsort(X, axis=0) + 1.0
    elif kind == "rare":  # mutations: most rows are zero
        X = (rng.random((n, d)) < 0.05).astype(float)
    flaw = rng.choice(["none"] * 40 + ["nan", "row of nan", "inf", "zero row", "zero column"])
    at = int(rng.integers(n)), int(rng.integers(d))
    if flaw in ("nan", "inf"):
        X[at] = np.nan if flaw == "nan" else np.inf
    elif flaw != "none":
        place = at[1] if flaw == "zero column" else at[0]
        if flaw == "zero column":
            X[:, place] = 0
        else:
            X[place] = np.nan if flaw == "row of nan" else 0
    return dressed(rng, X)


def dressed(rng, X):
    """The same numbers in one of many forms."""
    form = rng.choice(["float64"] * 30 + ["float32", "int", "bool", "fortran", "sparse",
                       "sparse", "list", "object", "text", "broken", "complex", "masked",
                       "dates"])  # fmt: skip
    with np.errstate(all="ignore"):
        match form:
            case "float32":
                return X.astype(np.float32)
            case "int":
                return np.clip(np.nan_to_num(X), -1e6, 1e6).astype(int)
            case "bool":
                return X > 0
            case "fortran":
                return np.asfortranarray(X)
            case "list":
                return X.tolist()
            case "object":
                return X.astype(object)
            case "text":
                return X.astype(str)
            case "complex":
                return X.astype(complex)
            case "masked":
                found = np.ma.masked_array(X.copy(), rng.random(X.shape) < 0.05)
                found.data[found.mask] = -9999
                return found
            case "dates":
                return np.clip(np.nan_to_num(X), 0, 1e6).astype("M8[ns]")
    if form in ("sparse", "broken"):
        kind = rng.choice(["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
        S = sp.coo_array(X).asformat(kind)
        if form == "broken" and hasattr(S, "indices") and S.nnz:
            S.indices[int(rng.integers(len(S.indices)))] = int(rng.choice([-1, 99, 10**9]))
        elif hasattr(S, "indices") and rng.random() < 0.5:
            S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
        return S
    return X


def draw_views(rng):
    n = int(rng.integers(2, 26))
    views = [draw_view(rng, n) for _ in range(rng.integers(1, 4))]
    odd = rng.choice(["no"] * 40 + ["length", "1-D", "empty", "dict", "dict", "3-D", "bare"])
    if odd == "length":
        views[-1] = draw_view(rng, n + 1)
    elif odd == "1-D":
        views = [rng.normal(size=n) for _ in views]
    elif odd == "empty":
        views = []
    elif odd == "3-D":
        views[0] = np.zeros((n, 2, 2))
    elif odd == "dict":
        return {f"view {k}": one for k, one in enumerate(views)}
    return views[0] if odd == "bare" and views else views


# ---- parameters --------------------------------------------------------------------------------

ODD = [0, 1, 2, 3, 7, 30, -1, 0.0, 0.5, 1e-300, 1e300, float("nan"), float("inf"), None, "x",
       True, [], "unit", "standard", ["unit", None], b"x", np.float32(2)]  # fmt: skip


def draw_model(rng):
    from polyspan import METHODS, ConsensusClusterer

    name = str(rng.choice([*METHODS, "consensus"] if rng.random() < 0.1 else list(METHODS)))
    if name == "consensus":
        members = [METHODS["concatkmeans"](2), METHODS["meangraph"](2)]
        return ConsensusClusterer(int(rng.integers(1, 5)), members=members, random_state=0)
    model = METHODS[name](int(rng.integers(1, 27)), random_state=0)
    known = model.get_params(deep=False)
    if "scale" in known and rng.random() < 0.5:
        model.set_params(scale=[None, "unit", "standard", "standard+unit"][rng.integers(4)])
    if "max_iter" in known:
        model.set_params(max_iter=int(rng.integers(1, 30)))
    if "n_neighbors" in known and rng.random() < 0.5:
        model.set_params(n_neighbors=int(rng.integers(1, 12)))
    if rng.random() < 0.2:
        names = [one for one in known if one not in ("views", "device", "random_state")]
        model.set_params(**{str(rng.choice(names)): ODD[rng.integers(len(ODD))]})
    return model


# ---- the calls ---------------------------------------------------------------------------------


def same(a, b):
    """Whether two inputs are the same, all the way down."""
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if sp.issparse(a):  # first, because dok_array is a dict
        names = [x for x in ("data", "indices", "indptr", "offsets") if hasattr(a, x)]
        if a.format in ("lil", "dok"):
            return same(a.toarray(), b.toarray())
        pairs = [(getattr(a, x), getattr(b, x)) for x in names]
        return all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in pairs)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, np.ma.MaskedArray):
        return same(a.data, b.data) and same(np.ma.getmaskarray(a), np.ma.getmaskarray(b))
    if isinstance(a, np.ndarray):
        if a.dtype == object:
            return same(a.tolist(), b.tolist())
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return a == b or (a != a and b != b)


def call_fit(rng, folder):
    """Fit twice with the same seed; then predict, or save and load."""
    from sklearn.base import clone

    from polyspan import load_model, save_model

    X, model = draw_views(rng), draw_model(rng)
    before, other = deepcopy(X), clone(model)
    try:
        labels = model.fit(X).labels_
    finally:
        if not same(before, X):
            raise Wrong("changed", "fit has modified its input")
    n = len(labels)
    if labels.shape != (n,) or labels.min() < 0:
        raise Wrong("unclear", f"labels of shape {labels.shape}, least {labels.min()}")
    if not np.array_equal(labels, other.fit(X).labels_):
        raise Wrong("unsteady", f"{model!r} has two answers")
    if rng.random() < 0.2:
        path = save_model(model, folder / "model.npz", force=True)
        if rng.random() < 0.7:
            path.write_bytes(spoiled(rng, path.read_bytes()))
        again = load_model(path)
        if hasattr(again, "predict"):
            again.predict(X)
    elif hasattr(model, "predict"):
        model.predict(X)


def tables(rng, n):
    """Two clean tables with names, as ordinary as possible."""
    import pandas as pd

    ids = [f"s{i:02d}" for i in rng.permutation(n)]
    frames = []
    for letter in "ab":
        X = rng.normal(size=(n, int(rng.integers(2, 6)))).round(3)
        X = np.argsort(X, axis=0) + 1.0 if rng.random() < 0.2 else X
        names = [f"{letter}{j}" for j in range(X.shape[1])]
        frames.append(pd.DataFrame(X, index=ids, columns=names))
    return frames


def small_model(rng):
    from polyspan import GRMSC, NEMO, AnchorGRMSC, ConcatKMeans, MeanGraph

    cls = [GRMSC, NEMO, AnchorGRMSC, ConcatKMeans, MeanGraph][rng.integers(5)]
    model = cls(int(rng.integers(2, 5)), random_state=0)
    return model.set_params(max_iter=5) if "max_iter" in model.get_params() else model


def call_containers(rng, folder):
    """The same values in other containers, files and orders give the same labels."""
    import polars
    import scipy.sparse
    from sklearn.base import clone

    from polyspan.datasets import load_views

    frames, model = tables(rng, int(rng.integers(8, 25))), small_model(rng)
    n = len(frames[0])
    if model.n_clusters > n // 2:
        model.set_params(n_clusters=2)
    arrays = [frame.to_numpy() for frame in frames]
    order = rng.permutation(n)
    files = {}
    for ending in ("csv", "parquet", "tsv"):
        files[ending] = [folder / f"{k}.{ending}" for k in "ab"]
        for frame, path in zip(frames, files[ending], strict=True):
            if ending == "parquet":
                frame.rename_axis("id").to_parquet(path)
            else:
                sep = "\t" if ending == "tsv" else ","
                frame.iloc[order if path.name[0] == "b" else slice(None)].to_csv(
                    path, sep=sep, index_label="id"
                )
    turned = [folder / f"{k}-turned.csv" for k in "ab"]
    for frame, path in zip(frames, turned, strict=True):
        frame.T.to_csv(path, index_label="feature")
    ways = {
        "frames": lambda: frames,
        "shuffled": lambda: [frames[0], frames[1].iloc[order]],
        "dict": lambda: dict(zip("ab", arrays, strict=True)),
        "fortran": lambda: [np.asfortranarray(X) for X in arrays],
        "masked": lambda: [np.ma.masked_array(X, False) for X in arrays],
        "objects": lambda: [X.astype(object) for X in arrays],
        "polars": lambda: [polars.DataFrame(frame) for frame in frames],
        "twice as large": lambda: [2 * X for X in arrays],
        "turned": lambda: load_views(turned, samples="columns"),
    }
    ways |= {ending: lambda two=two: load_views(two) for ending, two in files.items()}
    expected = model.fit(arrays).labels_
    for name in rng.choice(list(ways), size=4, replace=False):
        found = clone(model).fit(ways[name]()).labels_
        if not np.array_equal(found, expected):
            raise Wrong("unsteady", f"{model!r}: {name} gives {found}, arrays {expected}")
    sparse = [scipy.sparse.csr_array(X) for X in arrays]
    clone(model).fit(sparse)  # rounds differently


def call_sequence(rng, folder):
    """Calls in any order on one model: what fails changes nothing, what is saved stays the same."""
    from polyspan import load_model, save_model

    model, known = small_model(rng), None
    for step in rng.choice(["fit", "bad fit", "check", "predict", "save", "frame"], size=8):
        frames = tables(rng, int(rng.integers(10, 25)))
        if step == "fit":
            known = frames, model.fit(frames).labels_.copy()
        elif step == "bad fit":
            try:
                model.fit(draw_views(rng))
                known = None
            except Exception as error:
                clear(error)
        elif step == "check":
            model.check(frames)
        elif known is not None:
            views, labels = known
            if step == "save":
                model = load_model(save_model(model, folder / "steps.npz", force=True))
            elif step == "frame" and model.labels_frame().shape[0] != len(labels):
                raise Wrong("unsteady", f"{model!r}: labels_frame has other samples")
            elif step == "predict" and hasattr(model, "predict"):
                turned = [view.iloc[:, ::-1] for view in views]
                if not np.array_equal(model.predict(views), model.predict(turned)):
                    raise Wrong("unsteady", f"{model!r}: predict follows the order of columns")
            if not np.array_equal(model.labels_, labels):
                raise Wrong("unsteady", f"{model!r}: {step} changed the labels")


def spoiled(rng, content):
    """A few bytes flipped, cut out, inserted or zeroed."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at, length = int(rng.integers(len(content) + 1)), int(2 ** rng.integers(0, 9))
        match rng.choice(["flip", "cut", "end", "zeros", "insert", "repeat"]):
            case "flip" if at < len(content):
                content[at] ^= 1 << int(rng.integers(8))
            case "cut":
                del content[at : at + length]
            case "end":
                del content[at:]
            case "zeros":
                content[at : at + length] = bytes(len(content[at : at + length]))
            case "insert":
                content[at:at] = rng.bytes(length)
            case "repeat":
                content[at:at] = content[at : at + length]
        if not content:
            break
    return bytes(content)


def write_file(rng, folder):
    """A good file of one of the formats."""
    n, d = int(rng.integers(2, 12)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)).round(2)
    S = sp.csc_matrix(X * (rng.random(size=X.shape) < 0.5))
    ending = str(rng.choice(["npy", "npz", "sparse.npz", "mat", "sparse.mat", "v73.mat", "mtx",
                             "csv", "tsv", "csv.gz", "parquet", "h5ad"]))  # fmt: skip
    path = folder / f"x.{ending}"
    match ending:
        case "npy":
            np.save(path, X)
        case "npz":
            (np.savez_compressed if rng.random() < 0.5 else np.savez)(path, a=X, b=X[:, :1])
        case "sparse.npz":
            sp.save_npz(path, S, compressed=bool(rng.random() < 0.5))
        case "mat" | "sparse.mat":
            content = {"x": S if ending == "sparse.mat" else X, "gt": np.arange(n) % 2}
            scipy.io.savemat(path, content, do_compression=bool(rng.random() < 0.3))
        case "v73.mat":
            import h5py

            with h5py.File(path, "w", userblock_size=512) as file:
                file["x"] = X.T
                group = file.create_group("s")
                group.attrs["MATLAB_sparse"] = np.uint64(n)
                group["data"], group["ir"], group["jc"] = S.data, S.indices, S.indptr
            with path.open("r+b") as stream:
                stream.write(b"MATLAB 7.3 MAT-file".ljust(128))
        case "mtx":
            scipy.io.mmwrite(path, S if rng.random() < 0.5 else X)
        case "parquet":
            import pandas as pd

            pd.DataFrame(X, columns=[f"c{j}" for j in range(d)]).to_parquet(path)
        case "h5ad":
            import anndata

            anndata.AnnData(S if rng.random() < 0.5 else X).write_h5ad(path)
        case _:
            import pandas as pd

            table = pd.DataFrame(X, columns=[f"c{j}" for j in range(d)])
            table.insert(0, "id", [f"s{i}" for i in range(n)])
            table.to_csv(path, sep="\t" if ending == "tsv" else ",", index=False)
    return path


def call_file(rng, folder):
    """Read a spoiled file; what can be read can be clustered, or is refused."""
    from polyspan import ConcatKMeans
    from polyspan.datasets import load_file, load_views

    path = write_file(rng, folder)
    if rng.random() < 0.9:
        path.write_bytes(spoiled(rng, path.read_bytes()))
    try:
        if rng.random() < 0.5 and not path.name.endswith("h5ad"):
            views = load_file(path).views
        else:
            views = load_views([path]).views
        ConcatKMeans(2, n_init=1, random_state=0).fit(views)
    finally:
        path.unlink()


def call_store(rng, folder):
    """Read a spoiled store, and make tables of it."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
    from stored_rows import made

    from harness import append_rows, read_rows, report

    store = folder / "store.db"
    for path in folder.glob("store.db*"):
        path.unlink()
    final = {"stage": "final", "selection": "default"}
    append_rows(store, [made(seed, **final, nmi=float(rng.random())) for seed in range(3)])
    store.write_bytes(spoiled(rng, store.read_bytes()))
    rows = read_rows(store, tell=lambda _: None)
    if rows:
        report(rows)


SETTINGS: dict[str, str] = {}


def call_repeat(rng, folder):
    """Repeat a run from spoiled settings, on the command line: an exit code, never a traceback."""
    from polyspan.cli.main import main

    if not SETTINGS:
        X = np.random.default_rng(0).normal(size=(12, 3))
        np.save(folder / "view.npy", X)
        np.save(folder / "other.npy", X[:, :2] ** 2)
        files = [str(folder / "view.npy"), str(folder / "other.npy")]
        quietly(main, ["fit", *files, "--method", "concatkmeans", "--clusters", "2", "--force",
                       "--out", str(folder / "labels.csv")])  # fmt: skip
        SETTINGS["text"] = (folder / "labels.json").read_text()
    content = json.loads(SETTINGS["text"])
    if rng.random() < 0.5:
        place = content["asked"] if rng.random() < 0.6 else content
        place[str(rng.choice(list(place)))] = [None, 3, "../x", [], {}, True, ["a"], 1e99][
            rng.integers(8)
        ]
        text = json.dumps(content).encode()
    else:
        text = spoiled(rng, SETTINGS["text"].encode())
    (folder / "again.json").write_bytes(text)
    out = folder / "again.csv"
    code, err = quietly(
        main, ["fit", "--repeat", str(folder / "again.json"), "--out", str(out), "--force"]
    )
    if code not in (0, 1, 2):
        raise Wrong("unclear", f"exit code {code}")
    if code:
        clear(ValueError(err.strip().split("\n")[-1].removeprefix("polyspan: ")))


def quietly(function, *args):
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err:
        code = function(*args)
    return code, err.getvalue()


CALLS = {"fit": (call_fit, 0.4), "file": (call_file, 0.25), "containers": (call_containers, 0.1),
         "sequence": (call_sequence, 0.1), "store": (call_store, 0.08),
         "repeat": (call_repeat, 0.07)}  # fmt: skip


def clear(error):
    """Raise `Wrong` if an exception is no sentence for a user."""
    words = str(error)
    if not isinstance(error, ALLOWED) or isinstance(error, FOREIGN):
        raise Wrong("unclear", f"{type(error).__name__}: {words[:300]}") from error
    if len(words.split()) < WORDS or "\n" in words.strip():
        raise Wrong("unclear", f"{type(error).__name__} without a sentence: {words[:300]!r}")


def one_call(seed, i, folder):
    """Make call i; return its kind and how it ended."""
    rng = np.random.default_rng([seed, i])
    name = str(rng.choice(list(CALLS), p=[share for _, share in CALLS.values()]))
    try:
        with redirect_stdout(io.StringIO()):  # of verbose=30
            CALLS[name][0](rng, folder)
    except Wrong:
        raise
    except Exception as error:
        clear(error)
        return name, "refused"
    return name, "done"


# ---- the processes -----------------------------------------------------------------------------


def child(seed, first, end):
    """Make calls until the time is over, and print a line before and after each."""
    warnings.simplefilter("ignore")
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        i = first
        while time.time() < end:
            print(json.dumps({"begin": i}), flush=True)
            faulthandler.dump_traceback_later(LIMIT, exit=True)
            try:
                name, how = one_call(seed, i, Path(folder))
            except Wrong as error:
                name, how = error.args
            faulthandler.cancel_dump_traceback_later()
            print(json.dumps({"end": i, "name": name, "how": how}), flush=True)
            i += 1


def run(seed, minutes):
    """Make calls in children, each started where the last one died; return counts and findings."""
    end, i, started = time.time() + 60 * minutes, 0, 0.0
    counts, findings = Counter(), []
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    while time.time() < end:
        words = [sys.executable, __file__, "--seed", str(seed), "--child", str(i), str(end)]
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            for line in process.stdout:
                told = json.loads(line)
                if "begin" in told:
                    i, started = told["begin"], time.monotonic()
                    continue
                i += 1
                if told["how"] in ("done", "refused"):
                    counts[told["name"], told["how"]] += 1
                else:
                    findings.append((told["end"], told["name"], told["how"]))
                    print(f"call {told['end']}: {told['name']}: {told['how']}", flush=True)
            err = process.stderr.read()
        if process.returncode:
            hang = time.monotonic() - started >= LIMIT
            findings.append((i, "hang" if hang else "crash", f"exit {process.returncode}"))
            print(f"call {i}: {findings[-1][1:]}\n{err[-1500:]}", flush=True)
            i += 1
    return counts, findings


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="make this call alone, and show its traceback")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        child(args.seed, int(args.child[0]), float(args.child[1]))
        return 0
    if args.only is not None:
        warnings.simplefilter("ignore")
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(*one_call(args.seed, args.only, Path(folder)))
            except Wrong:
                traceback.print_exc()
                return 1
        return 0
    counts, findings = run(args.seed, args.minutes)
    for (name, how), number in sorted(counts.items()):
        print(f"{name:8} {how:8} {number:7}")
    kinds = Counter(kind for _, kind, _ in findings)
    told = ", ".join(f"{kinds[k]} {k}" for k in ("crash", "hang", "unclear", "unsteady", "changed"))
    print(f"seed {args.seed}: {counts.total() + len(findings)} calls; {told}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
