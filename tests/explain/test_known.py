import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, chi2_contingency, fisher_exact, kruskal
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from polyspan.explain import associations, read_known, survival


def test_classes_and_numbers_are_tested_as_scipy_does():
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 3
    diet = np.where(rng.random(120) < 0.6, labels, rng.integers(0, 3, 120))
    age = rng.normal(50, 5, 120) + 3 * labels
    known = {"diet": [f"d{k}" for k in diet], "age": age, "coin": rng.integers(0, 2, 120)}
    found = {one.column: one for one in associations(labels, known)}
    table = pd.crosstab(labels, diet).to_numpy()
    assert found["diet"].table.tolist() == table.tolist()
    assert found["diet"].values == ["d0", "d1", "d2"]
    test = chi2_contingency(table, correction=False)
    assert found["diet"].p == pytest.approx(test.pvalue, rel=1e-9)
    assert found["diet"].ari == pytest.approx(adjusted_rand_score(diet, labels), abs=1e-12)
    assert found["diet"].nmi == pytest.approx(normalized_mutual_info_score(diet, labels), abs=1e-9)
    test = kruskal(*(age[labels == k] for k in range(3)))
    assert (found["age"].test, found["age"].kind) == ("Kruskal-Wallis", "numbers")
    assert found["age"].p == pytest.approx(test.pvalue, rel=1e-9)
    assert found["age"].table[1, 1] == pytest.approx(np.median(age[labels == 1]))
    assert found["coin"].kind == "classes"
    assert found["coin"].p_adjusted == pytest.approx(found["coin"].p)  # the largest of three
    assert found["diet"].p_adjusted <= 3 * found["diet"].p


def test_few_samples_are_tested_exactly():
    labels, sex = [0] * 6 + [1] * 5, ["f"] * 5 + ["m"] * 6
    one = associations(labels, {"sex": sex})[0]
    assert one.test == "Fisher"
    assert one.p == pytest.approx(fisher_exact([[5, 1], [0, 5]]).pvalue, rel=1e-12)
    three = [0, 0, 1, 1, 2, 2] * 2
    one = associations(three, {"kind": list("aabbcc") * 2})[0]
    assert one.test == "chi-squared, permuted"
    # Of the 12!/(4!)^3 arrangements 6 keep the classes together; the smallest p there is.
    assert one.p == pytest.approx(1 / 10000, abs=3e-4)
    assert associations(three, {"kind": list("abcabc") * 2})[0].p > 0.3


def test_what_tells_nothing_is_named_and_not_tested():
    labels = [0, 0, 1, 1, 1, 1]
    known = {
        "name": list("abcdef"), "same": [1] * 6, "none": [None, "", float("nan")] * 2,
        "half": ["x", "y", None, None, None, None], "fine": [1.0, 1, None, 2, 2, 2],
    }  # fmt: skip
    found = {one.column: one for one in associations(labels, known)}
    assert [one for one in found if found[one].kind] == ["fine"]
    assert {name: found[name].test for name in ("name", "same", "none", "half")} == {
        "name": "different for all", "same": "the same for all", "none": "unknown for all",
        "half": "known in one cluster only",
    }  # fmt: skip
    assert found["fine"].n_samples == 5
    assert found["fine"].values == ["1", "2"]
    with pytest.raises(ValueError, match="age has 2 values, but there are 6 samples"):
        associations(labels, {"age": [1, 2]})


def write(path, text):
    path.write_text(text)
    return path


def test_annotations_are_matched_by_id(tmp_path):
    file = write(tmp_path / "c.csv", "age,who,diet\n3,c,fish\n1,a,corn\n9,z,none\n,b,fish\n")
    found = read_known(file, ["a", "b", "c", "d"], 4)
    assert found.columns["age"].tolist() == [1.0, None, 3.0, None]
    assert found.columns["diet"].tolist() == ["corn", "fish", "fish", None]
    assert list(found.columns) == ["age", "diet"]
    assert found.notes == [f"{file} lacks 1 of 4 samples (d)"]


def test_annotations_without_ids_go_by_order(tmp_path):
    file = write(tmp_path / "c.csv", "diet,age\nfish,3\ncorn,4\n")
    found = read_known(file, None, 2)
    assert found.columns["diet"].tolist() == ["fish", "corn"]
    assert "matched by order" in found.notes[0]
    with pytest.raises(ValueError, match=r"c\.csv has 2 rows, but there are 3 samples without ids"):
        read_known(file, None, 3)
    with pytest.raises(ValueError, match=r"c\.csv has none of the samples: .*such as 'wren'"):
        read_known(file, ["wren", "fox"], 2)
    twice = write(tmp_path / "d.csv", "who,age\na,1\na,2\n")
    with pytest.raises(ValueError, match=r"d\.csv: the ids in 'who' must differ, but"):
        read_known(twice, ["a", "b"], 2)
    np.save(tmp_path / "x.npy", np.eye(2))
    with pytest.raises(ValueError, match="annotations are read from a table"):
        read_known(tmp_path / "x.npy", ["a", "b"], 2)


def test_annotations_of_anndata(tmp_path):
    import anndata

    obs = pd.DataFrame({"type": pd.Categorical(["T", "B", None])}, index=["x", "y", "z"])
    anndata.AnnData(np.eye(3), obs=obs).write(tmp_path / "cells.h5ad")
    found = read_known(tmp_path / "cells.h5ad", ["y", "x", "z"], 3)
    assert found.columns["type"].tolist() == ["B", "T", None]


def log_rank(T, E, groups):
    """The statistic from its definition: observed less expected events, and their variance."""
    names = np.unique(groups)
    O_E, V = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for t in np.unique(T[E == 1]):
        risk = np.array([np.sum((T >= t) & (groups == g)) for g in names])
        dead = np.array([np.sum((T == t) & (E == 1) & (groups == g)) for g in names])
        n, d = risk.sum(), dead.sum()
        O_E += dead - d * risk / n
        if n > 1:
            V += d * (n - d) / (n - 1) * (np.diag(risk / n) - np.outer(risk, risk) / n**2)
    return O_E[:-1] @ np.linalg.solve(V[:-1, :-1], O_E[:-1])


def test_log_rank_and_curves():
    from lifelines.statistics import multivariate_logrank_test

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    T = np.ceil(rng.exponential(10 + 10 * labels)) * 1.0
    E = rng.integers(0, 2, 90)
    found = survival(labels, T, E)
    assert found.statistic == pytest.approx(log_rank(T, E, labels), rel=1e-9)
    assert found.p == pytest.approx(chi2.sf(found.statistic, 2), rel=1e-9)
    assert found.p == pytest.approx(multivariate_logrank_test(T, labels, E).p_value, rel=1e-9)
    for k, curve in enumerate(found.curves):
        own, seen = T[labels == k], E[labels == k]
        assert (curve.n_samples, curve.events) == (len(own), seen.sum())
        alive = 1.0
        for t, share in zip(curve.times, curve.alive, strict=True):
            at_risk = np.sum(own >= t)
            alive *= 1 - np.sum((own == t) & (seen == 1)) / max(at_risk, 1)
            assert share == pytest.approx(alive, abs=1e-9)
        assert found.at_risk[k, 0] == len(own)
        assert found.at_risk[k, 3] == np.sum(own >= found.ticks[3])


def test_events_in_words_and_as_in_r():
    T = [1.0, 2, 3, 4, 5, 6]
    labels = [0, 0, 0, 1, 1, 1]
    plain = survival(labels, T, [1, 0, 1, 0, 1, 1])
    assert survival(labels, T, [2, 1, 2, 1, 2, 2]).p == plain.p
    words = ["Dead", "alive", "dead", "Alive", "dead", "dead"]
    assert survival(labels, T, words).p == plain.p
    gaps = survival([*labels, 0], [*T, None], [1, 0, 1, 0, 1, 1, 1])
    assert (gaps.n_samples, gaps.p) == (6, plain.p)
    with pytest.raises(ValueError, match=r"events .* must be 0 and 1.* got '1', '0', '7'"):
        survival(labels, T, [1, 0, 7, 0, 1, 1])
    with pytest.raises(ValueError, match="times of survival must be numbers"):
        survival(labels, ["a", *T[1:]], [1, 0, 1, 0, 1, 1])
    with pytest.raises(ValueError, match="time has 5 values, but there are 6 samples"):
        survival(labels, T[1:], [1, 0, 1, 0, 1, 1])
