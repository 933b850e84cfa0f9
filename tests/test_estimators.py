"""What users can expect of every method: each test runs for all of METHODS."""

import inspect
import pickle
import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cases import case
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.estimator_checks import check_estimator

from polyspan import (
    GRMSC,
    LRR,
    METHODS,
    BestSingleView,
    ConcatKMeans,
    ConcatSpectral,
    ConsensusClusterer,
)
from polyspan.datasets import make_subspaces
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import watching

SEVERAL = [name for name, cls in METHODS.items() if not get_tags(cls()).single_view]
ITERATIVE = [name for name, cls in METHODS.items() if "max_iter" in cls.parameter_checks()]
LINEAR = [  # no n x n matrices
    "anchorgrmsc",
    "concatkmeans",
    "concatspectral",
    "lmvsc",
    "fpmvs",
    "meangraph",
    "nemo",
    "selfgraph",
    "fastmice",
]
SQUARE = [name for name in METHODS if name not in LINEAR]
# All common checks of these take a second; those of the others a minute together.
QUICK = ["grmsc", "concatkmeans", "concatspectral", "mcgc", "meangraph"]
CUTS = [slice(0, 6), slice(6, 14)]


def make(name, **params):
    """The method for three clusters and a seed."""
    return METHODS[name](**({"n_clusters": 3, "random_state": 0} | params))


def planted(n=45, noise=0.02, seed=0):
    """Two views, 6 and 8 features, of three planes; tie-free."""
    data = make_subspaces(n, 3, n_features=[6, 8], subspace_dim=2, noise=noise, random_state=seed)
    return data.views, data.labels


def few_iterations(name):
    """Parameters of a fit that need not converge."""
    if name == "bestsingleview":
        return {"estimator": LRR(max_iter=5)}
    return {"max_iter": 5} if name in ITERATIVE else {}


def views_for(name):
    """Views for a method: two, or one of them for a single-view method."""
    views, _ = planted()
    return views[:1] if name in ("lrr", "ssc") else views


def same(one, two):
    """Whether two labelings are the same up to names."""
    return adjusted_rand_score(one, two) == 1


# ---- scikit-learn ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in METHODS],
)
def test_scikit_learn(name):
    """All of scikit-learn's common checks; the failed ones are named with their error."""
    cheap = {key: value for key, value in {"n_init": 2, "tol": 1e-2}.items()
             if key in METHODS[name].parameter_checks()}  # fmt: skip
    done = check_estimator(METHODS[name](**cheap), on_skip=None, on_fail=None)
    assert len(done) > 40
    failed = [one for one in done if one["status"] not in ("passed", "skipped")]
    assert not failed, "\n".join(f"{one['check_name']}: {one['exception']!r}" for one in failed)
    skipped = {one["check_name"] for one in done if one["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # it needs SCIPY_ARRAY_API


@pytest.mark.parametrize("name", METHODS)
def test_pickling_keeps_what_was_learned(name):
    model = make(name).fit(views_for(name))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert again.get_params().keys() == model.get_params().keys()
    np.testing.assert_array_equal(again.fit_predict(views_for(name)), model.labels_)


@pytest.mark.parametrize("name", METHODS)
def test_clone_is_unfitted_and_equal(name):
    model = make(name, views=CUTS).fit(np.hstack(planted()[0])) if name in SEVERAL else make(name)
    copy = clone(model)
    assert not hasattr(copy, "labels_")
    assert repr(copy.get_params()) == repr(model.get_params())
    assert copy.set_params(n_clusters=2).get_params()["n_clusters"] == 2


def test_html():
    for name, cls in METHODS.items():
        assert cls.__name__ in make(name)._repr_html_(), name
    for name in ("grmsc", "lrr", "bestsingleview"):
        assert METHODS[name].__name__ in estimator_html_repr(make(name).fit(views_for(name))), name


@pytest.mark.parametrize("name", METHODS)
def test_the_constructor_only_stores(name):
    cls = METHODS[name]
    names = [p for p in inspect.signature(cls.__init__).parameters if p != "self"]
    values = {p: object() for p in names}
    model = cls(**values)
    assert all(getattr(model, p) is values[p] for p in names)
    assert vars(model).keys() == values.keys()


@pytest.mark.parametrize("name", METHODS)
def test_fit_leaves_the_parameters(name):
    model = make(name, random_state=np.random.RandomState(0))
    before = model.get_params()
    model.fit(views_for(name))
    after = model.get_params()
    assert all(after[key] is before[key] for key in before)


def everything_of(model):
    """All attributes of a model, arrays by their content."""
    return {name: pickle.dumps(value) for name, value in vars(model).items()}


BAD = {  # what is wrong with views, by the words that say so
    "contains NaN": lambda views: [np.full_like(views[0], np.nan), *views[1:]],
    "The views differ in length": lambda views: [*views, views[0][:-1]],
    "n_clusters=3 is more than n_samples=2": lambda views: [view[:2] for view in views],
}


@pytest.mark.parametrize("name", [*METHODS, "consensus"])
def test_a_fit_that_fails_changes_nothing(name, monkeypatch):
    """Neither data that are refused, nor a solver that breaks, touches what a fit left."""
    views = [pd.DataFrame(view, [f"s{i}" for i in range(45)]) for view in views_for(name)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "consensus":
            members = [ConcatKMeans(), ConcatSpectral()]
            model = ConsensusClusterer(3, members=members, random_state=0).fit(views)
        else:
            model = make(name, **few_iterations(name)).fit(views)
    before, labels = everything_of(model), model.labels_frame()
    other = [view.set_axis([f"t{i}" for i in range(45)]) for view in views]
    for words, change in BAD.items():
        with case(words):
            with pytest.raises(ValueError, match=words):
                model.fit(change([view.to_numpy() for view in views]))
            assert everything_of(model) == before
    model.check(other)  # is no fit
    assert everything_of(model) == before

    def broken(*given, **options):
        raise RuntimeError("the solver broke")

    monkeypatch.setattr(type(model), "solve", broken)
    with pytest.raises(RuntimeError, match="the solver broke"):
        model.fit(other)
    assert everything_of(model) == before
    pd.testing.assert_frame_equal(model.labels_frame(), labels)


def test_checking_other_kernels_leaves_predict_as_it_was():
    views, _ = planted()
    kernels = [X @ X.T for X in views]
    model = GRMSC(3, precomputed="kernel", random_state=0).fit(kernels)
    new = [K[:7] for K in kernels]
    before = model.predict(new)
    model.check([K + np.eye(len(K)) for K in kernels])
    np.testing.assert_array_equal(model.predict(new), before)


def documented(cls):
    """Names of the parameters that the class's docstring describes, joint entries included."""
    text = inspect.getdoc(cls).split("Parameters\n----------\n")[1].split("\n\nAttributes\n")[0]
    heads = [line.split(" : ")[0] for line in text.splitlines() if re.match(r"\w", line)]
    return [name.strip() for head in heads for name in head.split(",")]


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_is_documented_with_its_default(name):
    cls = METHODS[name]
    defaults = cls().get_params(deep=False)
    assert sorted(documented(cls)) == sorted(defaults)
    text = inspect.getdoc(cls)
    for line in re.findall(r"^(\w+ : .*default=.*)$", text, re.MULTILINE):
        param, value = line.split(" : ")[0], line.split("default=")[1]
        assert eval(value) == defaults[param], line


# ---- forms of input ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_all_forms_give_the_same_labels(name):
    views, _ = planted()
    few = few_iterations(name)
    wanted = make(name, **few).fit_predict(views)
    whole = np.hstack(views)
    forms = {
        "tuple": tuple(views),
        "dict": {"a": views[0], "b": views[1]},
        "lists": [view.tolist() for view in views],
        "frames": [pd.DataFrame(view) for view in views],
        "fortran": [np.asfortranarray(view) for view in views],
    }
    for form, X in forms.items():
        np.testing.assert_array_equal(make(name, **few).fit_predict(X), wanted, err_msg=form)
    for X in (whole, pd.DataFrame(whole)):
        np.testing.assert_array_equal(make(name, views=CUTS, **few).fit_predict(X), wanted)
    columns = [list(range(6)), list(range(6, 14))]
    np.testing.assert_array_equal(make(name, views=columns, **few).fit_predict(whole), wanted)


@pytest.mark.parametrize("name", METHODS)
def test_one_array_and_a_list_of_one_are_the_same(name):
    view = planted()[0][0]
    np.testing.assert_array_equal(make(name).fit_predict(view), make(name).fit_predict([view]))


@pytest.mark.parametrize("name", METHODS)
def test_names_and_numbers_of_features(name):
    frame = pd.DataFrame(planted()[0][0], columns=list("abcdef"))
    model = make(name).fit(frame)
    assert model.n_features_in_ == 6
    assert list(model.feature_names_in_) == list("abcdef")
    model.fit(views_for(name))
    assert model.n_features_in_ == (14 if name in SEVERAL else 6)
    assert not hasattr(model, "feature_names_in_")


def score(model, X, y):
    """Scorer on labels_, as grid search wants it."""
    last = model[-1] if hasattr(model, "steps") else model
    return clustering_scores(y, last.labels_)["nmi"]


def everything(n):
    """The split that trains and scores on all samples."""
    return [(np.arange(n), np.arange(n))]


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pipeline(name):
    views, _ = planted()
    whole = np.hstack(views)
    pipe = make_pipeline(MinMaxScaler(), make(name, views=CUTS, **few_iterations(name)))
    wanted = clone(pipe[-1]).fit_predict(MinMaxScaler().fit_transform(whole))
    np.testing.assert_array_equal(pipe.fit_predict(whole), wanted)
    framed = clone(pipe).set_output(transform="pandas").fit_predict(pd.DataFrame(whole))
    np.testing.assert_array_equal(framed, wanted)


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search(name):
    views, labels = planted()
    few = few_iterations(name)
    model, grid = make(name, views=CUTS, **few), {"n_clusters": [2, 3, 4]}
    search = GridSearchCV(model, grid, cv=everything(45), scoring=score)
    search.fit(np.hstack(views), labels)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    wanted = [
        clustering_scores(labels, make(name, n_clusters=c, **few).fit_predict(views))["nmi"]
        for c in (2, 3, 4)
    ]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], wanted)
    assert search.best_estimator_.labels_.shape == (45,)


def test_grid_search_over_a_pipeline():
    views, labels = planted()
    pipe = make_pipeline(MinMaxScaler(), GRMSC(3, views=CUTS, random_state=0))
    grid = {"grmsc__lam2": [1.0, 1000.0], "grmsc__views": [CUTS, None]}
    search = GridSearchCV(pipe, grid, cv=everything(45), scoring=score)
    search.fit(np.hstack(views), labels)
    assert len(search.cv_results_["params"]) == 4
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()


# ---- sparse ------------------------------------------------------------------------------------


def counted(n=30, d=60, seed=0):
    """Two non-negative views with many zeros, as word counts are."""
    rng = np.random.default_rng(seed)
    views = [rng.poisson(0.3, size=(n, d)).astype(float) for _ in range(2)]
    for view in views:
        view[:, 0] = 1 + rng.uniform(size=n)
    return views


def long_indices(view):
    """A sparse view with indices of 64 bits, as very large ones have."""
    view = sp.csr_array(view)
    view.indices, view.indptr = view.indices.astype(np.int64), view.indptr.astype(np.int64)
    return view


def sparse_is_as_dense(name, convert):
    """The labels of converted views are those of the dense ones."""
    views = counted() if name in SEVERAL else counted()[:1]
    params = few_iterations(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        wanted = make(name, **params).fit_predict(views)
        found = make(name, **params).fit_predict([convert(view) for view in views])
        alone = make(name, **params).fit_predict(convert(views[0]))
    assert same(found, wanted)
    assert set(alone) <= {0, 1, 2}


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_sparse_formats(format, kind):
    """In one method that keeps views sparse and in one that does not; inputs convert for all."""
    for name in ("concatkmeans", "grmsc"):
        with case(name):
            sparse_is_as_dense(name, getattr(sp, f"{format}_{kind}"))


@pytest.mark.parametrize("name", METHODS)
def test_sparse(name):
    for convert in (sp.csc_matrix, long_indices):
        with case(convert.__name__):
            sparse_is_as_dense(name, convert)


@pytest.mark.parametrize("d", [10, 60])
@pytest.mark.parametrize("cls", [GRMSC, LRR])
def test_sparse_and_dense_learn_the_same(cls, d):
    views = counted(d=d)[: 2 if cls is GRMSC else 1]
    dense = cls(3, random_state=0).fit(views).representation_
    for mixed in ([sp.csr_matrix(v) for v in views], [sp.csc_array(views[0]), *views[1:]]):
        found = cls(3, random_state=0).fit(mixed).representation_
        # the reduction goes through eigenvectors of the Gram matrix, which halve the digits
        np.testing.assert_allclose(found, dense, rtol=0, atol=1e-8)


@pytest.mark.parametrize("scale", ["unit", None])
@pytest.mark.parametrize("cls", [GRMSC, LRR])
def test_a_very_wide_sparse_view_is_never_made_dense(cls, scale):
    wide = sp.random_array((200, 5_000_000), density=1e-5, format="csr", rng=0)
    tracemalloc.start()
    try:
        model = cls(3, scale=scale, random_state=0).fit([wide])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.labels_.shape == (200,)
    assert peak < 2**27  # 128 MiB; a dense copy takes 8 GB


def test_nor_is_one_with_something_in_every_column():
    wide = sp.random_array((100, 1_000_000), density=0.005, format="csr", rng=0)
    tracemalloc.start()
    try:
        GRMSC(3, random_state=0).fit([wide])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**26  # 64 MiB; the 400,000 columns that hold something take 320 MB


@pytest.mark.parametrize("cls", [ConcatKMeans, ConcatSpectral])
def test_the_baselines_keep_a_wide_sparse_view_sparse(cls):
    wide = sp.random_array((200, 1_000_000), density=5e-5, format="csr", rng=0)
    tracemalloc.start()
    try:
        cls(3, n_init=1, random_state=0).fit([wide, np.random.default_rng(0).normal(size=(200, 3))])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**28  # 256 MiB; a dense copy takes 1.6 GB, three dense centers 24 MB


# ---- dtypes, and what is left alone ------------------------------------------------------------


@pytest.mark.parametrize("cls", [GRMSC, LRR])
@pytest.mark.parametrize("affinity", ["dense", "sparse"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_float32_is_computed_in_float32(cls, affinity, form):
    view = form(planted()[0][1].astype(np.float32))
    model = cls(3, affinity=affinity, random_state=0).fit([view])
    assert model.representation_.dtype == np.float32
    assert model.affinity_matrix_.dtype == np.float32
    assert model.history_["data"][-1] < 1e-6  # and it converges there


def test_float32_finds_what_float64_finds():
    views, labels = planted()
    single = GRMSC(3, random_state=0).fit([view.astype(np.float32) for view in views])
    double = GRMSC(3, random_state=0).fit(views)
    # float32 has 7 digits and the last penalties multiply its rounding
    np.testing.assert_allclose(single.representation_, double.representation_, rtol=0, atol=1e-3)
    assert same(single.labels_, labels)


@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("float64", "float32"), ("int64",) * 2])
def test_nothing_else_is_lowered(dtypes):
    views = [(100 * v).astype(t) for v, t in zip(planted()[0], dtypes, strict=True)]
    model = GRMSC(3, random_state=0).fit(views)
    assert model.representation_.dtype == np.float64
    assert model.affinity_matrix_.dtype == np.float64
    wanted = GRMSC(3, random_state=0).fit([view.astype(np.float64) for view in views])
    np.testing.assert_array_equal(model.representation_, wanted.representation_)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_input_is_not_modified(name):
    views = [view.copy() for view in views_for(name)]
    sparse = [sp.csr_array(view) for view in counted()[: len(views)]]
    before = [view.copy() for view in views], [view.copy() for view in sparse]
    for view in views:
        view.setflags(write=False)
    for view in sparse:
        for part in (view.data, view.indices, view.indptr):
            part.setflags(write=False)
    for scale in ("unit", "standard+unit", "standard", None):
        params = few_iterations(name) | {"scale": scale}
        if name == "bestsingleview":
            params = {"estimator": LRR(scale=scale, max_iter=5)}
        model = make(name, **params)
        with case(f"scale={scale}"):
            model.fit(views)
            model.fit(sparse)
            for old, new in zip(before[0], views, strict=True):
                np.testing.assert_array_equal(old, new)
            for old, new in zip(before[1], sparse, strict=True):
                np.testing.assert_array_equal(old.toarray(), new.toarray())
                np.testing.assert_array_equal(old.indices, new.indices)


# ---- errors, before any work -------------------------------------------------------------------

WRONG = {
    "n_clusters": [0, -1, 2.0, "3", True],
    "n_neighbors": [0, 1.5, "all"],
    "n_kept": [0, 2.5, None],
    "n_init": [0, "auto", 1.0],
    "max_iter": [0, 10.0, None],
    "verbose": [-1, 0.5, "yes"],
    "tol": [-1e-9, "small", True, np.nan, np.inf],
    "lam": [-1.0, "1", np.nan, np.inf],
    "lam1": [0, -1.0, None, np.nan, np.inf],
    "lam2": [-1.0, "10", np.nan, np.inf],
    "alpha": [-1e-3, "a", np.nan],
    "rho": [0.9, "2", None],
    "mu0": [0.0, -1, "x"],
    "mu_max": [0.0, -1, np.inf],
    "affinity": ["knn", None, 1],
    "orientation": ["rows", None, 0],
    "regularizer": ["second", None, True],
    "second_width": ["median", 2.0, None],
    "scale": ["minmax", 1, True, [], ["unit", "minmax"], [["unit"]], ("unit", 1)],
    "graph_scale": ["minmax", 1, False, [], ["same", "minmax"]],
    "view_weights": [1.0, "equal", [], [0.0, 0.0], [1.0, -1.0], [1.0, np.nan], [[1.0, 1.0]]],
    "precomputed": ["graph", True, 0],
    "graphs": [1, "knn", [], [[0, 1]], {"a": 1}],
    "random_state": [-1, "seed", 0.5],
    "oracle": [1, "yes", None],
    "latent_dim": [0, 2.5, None],
    "as_released": [1, "yes", None],
    "variant": ["mean", None, 0],
    "kernel": ["rbf", None, 1],
    "sigma": [0.0, "1", None, [], [1.0, -1.0], [1.0, "1"]],
    "rank_share": [-0.1, 1.1, None, np.nan],
    "lam_agreement": [-1.0, "1", np.nan, np.inf],
    "lam_components": [0.0, "1", None, np.nan],
    "lam_cut": [0.0, -1.0, "1", np.inf],
    "lam_rank": [0.0, "1", None, np.nan],
    "lam_ratio": [0.0, -1.0, "1", np.inf],
    "lam_ridge": [0.0, -1.0, "1", np.inf],
    "lam_c": [0.0, -1.0, None, np.nan],
    "lam_d": [0.0, -1.0, None, np.nan],
    "lam_s": [0.0, "1", np.inf],
    "lam_v": [-1.0, "1", np.inf],
    "n_projected": [0, 2.5, "all"],
    "n_rounds": [0, 2.5, None],
    "max_inner": [0, 2.5, None],
    "labels_from": ["F", None, 0],
    "estimator": ["lrr", LRR, 3],
    "n_anchors": [0, 2.5, "all"],
    "anchors": ["knn", None, 3, [1, 1], [0.5]],
    "dtype": ["float16", None, float],
    "chunk_size": [0, 1.5, None],
    "n_jobs": [0, 1.5, "all"],
}


def fails_before_any_work(model, X, kind, match):
    """The error comes, and no solver has made an iteration."""
    iterations = []
    with watching(iterations.append), pytest.raises(kind, match=match) as caught:
        model.fit(X)
    assert not iterations
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_is_checked(name):
    cls, views = METHODS[name], views_for(name)
    assert set(cls.parameter_checks()) | {"views"} == set(cls().get_params(deep=False))
    for param, check in cls.parameter_checks().items():
        match = rf"^{cls.__name__}: {param} must be .*; got .*\.$"
        zero = [0.0] if "number > 0" in (check("a word") or "") else []
        for value in [*WRONG.get(param, []), *zero, ["no parameter is a list"]]:
            with case(f"{param}={value!r}"):
                fails_before_any_work(make(name, **{param: value}), views, ValueError, match)


@pytest.mark.parametrize("name", ["grmsc", "anchorgrmsc", "concatspectral"])
def test_more_neighbors_than_others(name):
    for k in (45, 46, 1000):
        match = rf"^{METHODS[name].__name__}: n_neighbors={k} must be below n_samples=45: .* only"
        with case(f"n_neighbors={k}"):
            model = make(name, n_neighbors=k)
            fails_before_any_work(model, views_for(name), ValueError, match + " 44")


@pytest.mark.parametrize("name", SQUARE)
def test_more_memory_than_there_is(name):
    many = np.arange(2_000_000.0)[:, None] + 1
    match = rf"^{METHODS[name].__name__} on 2000000 samples needs about \d+ GiB for its n x n"
    fails_before_any_work(make(name), many, MemoryError, match)


LATE = {
    "length": (np.ones((44, 2)), "view 2 has 44 samples"),
    "NaN": (np.full((45, 2), np.nan), "^view 2 contains NaN"),
    "inf": (np.full((45, 2), -np.inf), "^view 2 contains inf"),
    "constant": (np.ones((45, 2)), "^view 2 is constant"),
    "no columns": (np.empty((45, 0)), r"^view 2: Found array with 0 feature\(s\)"),
    "no rows": (np.empty((0, 3)), r"^view 2: Found array with 0 sample\(s\)"),
    "text": (pd.DataFrame({"name": ["a"] * 45}), r"^view 2 has 1 column .* \('name'\)"),
    "objects": (np.full((45, 2), "x", dtype=object), "^view 2: could not convert"),
    "complex": (np.full((45, 2), 1j), "^view 2: Complex data not supported"),
    "3-D": (np.ones((45, 2, 2)), "^view 2 is 3-D"),
    "1-D": (np.ones(45), "^view 2 is 1-D"),
}


@pytest.mark.parametrize("bad", LATE)
def test_the_last_view_is_checked_before_any_work(bad):
    """Where views are solved for together and where they are read in chunks."""
    view, match = LATE[bad]
    named = dict(zip("abc", [*planted()[0], view], strict=True))
    named_match = match.replace("view 2", "view 'c'")
    for name in ("grmsc", "anchorgrmsc"):
        with case(name):
            fails_before_any_work(make(name), list(named.values()), ValueError, match)
            fails_before_any_work(make(name), named, ValueError, named_match)


@pytest.mark.parametrize("name", METHODS)
def test_what_cannot_be_clustered_is_refused_before_any_work(name):
    views, whole = planted()[0], np.hstack(planted()[0])
    few = "n_clusters=46 is more than n_samples=45: ask for fewer"
    cases = [
        ("clusters", {"n_clusters": 46}, views_for(name), f"^{METHODS[name].__name__}: {few}"),
        ("no views", {}, [], "^X is an empty list"),
        ("no views", {}, (), "^X is an empty tuple"),
        ("no views", {}, {}, "^X is an empty dict"),
        ("cuts of views", {"views": CUTS}, views, "^views=... cuts one 2-D array into views, but"),
        (
            "cuts outside",
            {"views": [slice(0, 6), [99]]},
            whole,
            r"^views\[1\]=\[99\] does not select columns of X, which has 14",
        ),
        (
            "cuts of nothing",
            {"views": [slice(0, 6), slice(14, 20)]},
            whole,
            r"^views\[1\]=.* does not select columns of X",
        ),
        ("no cuts", {"views": 3}, whole, "^views must be a list with one slice"),
    ]
    if name in SEVERAL:
        for bad in ("length", "NaN"):
            view, match = LATE[bad]
            cases.append((f"{bad} of the last view", {}, [*views, view], match))
    for words, params, X, match in cases:
        with case(words):
            fails_before_any_work(make(name, **params), X, ValueError, match)


@pytest.mark.parametrize("name", SEVERAL)
def test_samples_without_data(name):
    views = [view.copy() for view in planted()[0]]
    views[0][4] = 0
    with pytest.warns(UserWarning, match=r"of the 45 samples .*\(1 in view 0, row 4\)") as caught:
        labels = make(name).fit(views).labels_
    assert len([w for w in caught if "zeros" in str(w.message)]) == 1
    assert caught[0].filename == __file__  # it points at the call, not into the library
    assert set(labels) == {0, 1, 2}
    views[1][4] = 0
    match = r"^1 of 45 samples are all zeros in every view \(row 4\)"
    fails_before_any_work(make(name), views, ValueError, match)


@pytest.mark.parametrize("name", METHODS)
def test_sizes_that_overflow_unscaled(name):
    if name == "bestsingleview":
        model = make(name, estimator=LRR(scale=None))
    else:
        model = make(name, scale=None)
    view = planted()[0][0] * 1e200
    fails_before_any_work(model, view, ValueError, "^view 0 has values of size .*rescale it")
    if name in ("grmsc", "lrr"):
        match = "^view 0 has values of size .*too large to solve for a representation in float"
        fails_before_any_work(model, view / 1e180, ValueError, match)
        fails_before_any_work(model, np.float32(view / 1e194), ValueError, match + "32")


# ---- what must work ----------------------------------------------------------------------------


def odd_labels(name, X, n_clusters):
    """The labels, which are whole numbers in range."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = make(name, n_clusters=n_clusters).fit_predict(X)
    assert found.dtype.kind == "i"
    assert set(found) <= set(range(n_clusters))
    return found


def normal(n, d):
    return np.random.default_rng(0).normal(size=(n, d))


SMALL = {  # views, clusters wanted, clusters that must be found
    "two samples, one cluster": (np.eye(2), 1, 1),
    "two samples, two clusters": (np.eye(2), 2, None),
    "one feature": (normal(20, 1), 3, None),
    "one feature, twice": ([normal(20, 1)] * 2, 3, None),
    "as many clusters as samples": (normal(9, 5), 9, None),
    "one cluster": (planted()[0], 1, 1),
    "one view": (planted()[0][:1], 3, 3),
    "few distinct samples": ([np.repeat(np.eye(2), 6, axis=0)] * 2, 5, None),
}


@pytest.mark.parametrize("name", METHODS)
def test_small_and_odd(name):
    for words, (X, n_clusters, found) in SMALL.items():
        X = X[:1] if isinstance(X, list) and name not in SEVERAL else X
        with case(words):
            labels = odd_labels(name, X, n_clusters)
            assert len(labels) == len(X[0] if isinstance(X, list) else X)
            assert found is None or len(set(labels)) == found


@pytest.mark.parametrize("name", METHODS)
def test_duplicates(name):
    views = [np.repeat(view[::5], 5, axis=0) for view in views_for(name)]
    labels = odd_labels(name, views, 3)
    assert np.all(labels.reshape(-1, 5) == labels[::5, None])


@pytest.mark.parametrize("name", METHODS)
def test_more_than_half_of_the_distances_are_zero(name):
    if name == "tsvdmsc":
        pytest.skip("its Fourier transform along the samples treats equal ones differently")
    view = np.array([[1.0, 0.0]] * 18 + [[0.0, 1.0], [1.0, 1.0]])
    labels = odd_labels(name, [view] * (2 if name in SEVERAL else 1), 2)
    assert len(set(labels[:18])) == 1


# ---- seeds and orders --------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_labels(name):
    # noise only and one restart: another seed does give another clustering here
    X = np.random.default_rng(0).normal(size=(60, 4))
    few = {"n_init": 1, "n_clusters": 6}
    if name == "bestsingleview":
        few = {"estimator": LRR(6, n_init=1), "n_clusters": 6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        wanted = make(name, random_state=3, **few).fit_predict(X)
        np.testing.assert_array_equal(make(name, random_state=3, **few).fit_predict(X), wanted)
        others = (make(name, random_state=s, **few).fit_predict(X) for s in range(4, 8))
        if name not in ("mcgc", "gsf"):  # components of a graph, whatever the seed
            assert any(not np.array_equal(other, wanted) for other in others)
        # a clone copies the state of a RandomState
        model = make(name, random_state=np.random.RandomState(3), **few)
        one, two = clone(model).fit_predict(X), clone(model).fit_predict(X)
        np.testing.assert_array_equal(one, two)


# Planes through 0 are no clusters to k-means nor to anchors on one side of 0.
APART = ("concatkmeans", "fpmvs", "fastmice")


def apart(views, labels):
    """Shift the clusters apart, in every feature of every view."""
    return [view + 3 * np.eye(3)[:, np.arange(view.shape[1]) % 3][labels] for view in views]


@pytest.mark.parametrize("name", METHODS)
def test_permuting_samples_permutes_labels(name):
    views = views_for(name)
    if name in APART:
        views = apart(views, planted()[1])
    order = np.random.default_rng(0).permutation(45)
    labels = make(name).fit_predict(views)
    permuted = make(name).fit_predict([view[order] for view in views])
    assert same(permuted, labels[order])


@pytest.mark.parametrize("affinity", ["dense", "sparse"])
def test_permuting_samples_permutes_the_representation(affinity):
    views, _ = planted(noise=0.3)
    order = np.random.default_rng(0).permutation(45)
    one = GRMSC(3, affinity=affinity, random_state=0).fit(views)
    two = GRMSC(3, affinity=affinity, random_state=0).fit([view[order] for view in views])
    wanted = one.representation_[np.ix_(order, order)]
    # the solver stops at residuals of 1e-6; rounding in another order stays far below
    np.testing.assert_allclose(two.representation_, wanted, rtol=0, atol=1e-8)
    assert same(two.labels_, one.labels_[order])


@pytest.mark.parametrize("name", SEVERAL)
def test_the_order_of_views_does_not_matter(name):
    data = make_subspaces(45, 3, n_features=[6, 8, 5], subspace_dim=2, noise=0.05, random_state=1)
    views = apart(data.views, data.labels) if name == "fastmice" else data.views  # it draws views
    wanted = make(name).fit_predict(views)
    for order in ([2, 1, 0], [1, 2, 0]):
        found = make(name).fit([views[k] for k in order])
        assert same(found.labels_, wanted)


def test_the_order_of_views_does_not_change_the_representation():
    views, _ = planted(noise=0.3)
    one, two = GRMSC(3).fit(views), GRMSC(3).fit(views[::-1])
    np.testing.assert_allclose(two.representation_, one.representation_, rtol=0, atol=1e-8)


# ---- planted subspaces -------------------------------------------------------------------------


@pytest.mark.parametrize("affinity", ["dense", "sparse"])
@pytest.mark.parametrize("seed", range(3))
def test_planted_subspaces_are_recovered(seed, affinity):
    data = make_subspaces(90, 3, n_features=[20, 30], subspace_dim=3, noise=0.01, random_state=seed)
    kept = {"affinity": affinity, "random_state": 0}
    for model in (GRMSC(3, **kept), BestSingleView(LRR(3, **kept))):
        labels = model.fit_predict(data.views)
        assert clustering_scores(data.labels, labels)["acc"] == 1
