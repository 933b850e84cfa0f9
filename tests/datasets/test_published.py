"""The multi-omics data sets: what the loaders make of the published files, and their steps."""

import sys

import numpy as np
import pytest
from scipy import sparse

from polyspan.datasets import load_dataset
from polyspan.datasets.published import (
    centered_log_ratio,
    latent_semantic,
    log_normalized,
    principal_components,
    tf_idf,
)
from polyspan.io.readers import read_r

DIETS = ["coc", "fish", "lin", "ref", "sun"]
# name: features of the views, samples in each class.
PUBLISHED = {
    "breast_tcga": ([200, 184, 142], {"Basal": 45, "Her2": 30, "LumA": 75}),
    "nutrimouse": ([120, 21], {"ppar": 20, "wt": 20}),
    "nutrimouse_diet": (
        [120, 21],
        {f"{one} {diet}": 4 for one in ("ppar", "wt") for diet in DIETS},
    ),
    "nci60": (
        [300, 298, 268, 288],
        {"BR": 5, "CNS": 6, "CO": 7, "LC": 9, "LE": 6, "ME": 10, "OV": 7, "PR": 2, "RE": 8},
    ),
    "brca_pam50": (
        [1761, 138, 131, 82],
        {"Basal": 68, "Her2": 45, "LumA": 159, "LumB": 86, "Normal": 5},
    ),
    "citeseq_pbmc": (
        [20, 10],
        {
            **{"B cells": 69, "CD14+ monocytes": 99, "CD16+ monocytes": 7},
            **{"CD4+ T cells": 571, "CD8+ T cells": 223, "NK cells": 213},
        },
    ),
    "snare_cortex": (
        [20, 20],
        {
            **{"Astro": 444, "CGE": 129, "Clau": 146, "Endo": 22, "L2/3": 3928, "L4/5": 2275},
            **{"L6": 1186, "MGC": 63, "Mis": 1119, "Npy": 100, "OPC": 98, "Oligo": 300},
            **{"Peri": 19, "Pvalb": 274, "Sst": 206},
        },
    ),
}
CLASSES = {
    **{"breast_tcga": "subtype", "nutrimouse": "genotype", "nutrimouse_diet": "genotype_diet"},
    **{"nci60": "tissue", "brca_pam50": "pam50", "citeseq_pbmc": "type", "snare_cortex": "type"},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_data_sets(omics_dir, name):
    features, classes = PUBLISHED[name]
    data = load_dataset(name)
    n = sum(classes.values())
    assert [view.shape for view in data.views] == [(n, d) for d in features]
    assert data.n_clusters == len(classes)
    names, counts = np.unique(data.extra[CLASSES[name]], return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == classes
    np.testing.assert_array_equal(names[data.labels], data.extra[CLASSES[name]])
    assert len(set(data.extra["id"])) == n
    for view in data.views:
        assert view.dtype == np.float64
        assert np.isfinite(view).all()
        assert view.std(axis=0).min() > 0


def test_gbm_has_survival_and_no_classes(omics_dir):
    data = load_dataset("gbm")
    assert repr(data) == "Dataset('gbm': 100 samples, 2 views (gene 1500, mirna 470), no labels)"
    assert data.labels.shape == (0,)
    assert data.extra["id"][:2].tolist() == ["TCGA-02-0001", "TCGA-02-0003"]
    assert data.extra["time"][:3].tolist() == [358, 144, 558]
    assert set(data.extra["status"].tolist()) == {0, 1}
    assert data.extra["time"].shape == data.extra["status"].shape == (100,)


def test_values_belong_to_their_samples(omics_dir):
    """Single values, read from the published files by hand."""
    data = load_dataset("breast_tcga")
    assert data.extra["id"][0] == "A0FJ"
    np.testing.assert_allclose(data.views[0][0, :2], [4.36218331, 7.53346145])  # RTN2, NDRG2
    np.testing.assert_allclose(data.views[1][0, :2], [11.83581564, 12.85104672])
    np.testing.assert_allclose(data.views[2][1, :2], [-0.07998211, 0.60521842])

    data = load_dataset("nci60")
    assert data.extra["id"][:2].tolist() == ["BR.MCF7", "BR.MDA_MB_231"]
    assert data.views[0][:2, :2].tolist() == [[-6.97, 5.19], [-5.51, 5.83]]

    data = load_dataset("brca_pam50")
    assert data.extra["id"][1] == "TCGA-A1-A0SJ-01"
    assert data.views[0][1, :2].tolist() == [313, 182]  # ranks for A2M and AASS
    np.testing.assert_allclose(2 ** data.views[1][1, 0] - 1, 2889.658553)
    np.testing.assert_allclose(data.views[3][1, :2], [0.43041, 0.76044])

    data = load_dataset("nutrimouse")
    assert data.views[0][0, :3].tolist() == [-0.42, -0.65, -0.84]
    assert data.extra["diet"][:4].tolist() == ["lin", "sun", "sun", "fish"]


def test_samples_are_matched_by_id(omics_dir, tmp_path):
    """Reversed columns in one table, and a sample less in another."""
    from polyspan.datasets.published import brca_pam50

    names = ("mrna_rank", "mirna_subset", "protein_subset", "cnv_subset", "pam50_subset")
    paths = [omics_dir / f"brca_{name}.txt" for name in names]
    rows = [line.split("\t") for line in paths[3].read_text().splitlines()]
    other = tmp_path / "cnv.txt"
    turned = [row[:0:-1] if i == 0 else [row[0], *row[:1:-1]] for i, row in enumerate(rows)]
    other.write_text("\n".join("\t".join(row) for row in turned) + "\n")
    views, classes, extra, names = brca_pam50(*paths[:3], other, paths[4])
    whole = brca_pam50(*paths)
    assert extra["id"].tolist() == whole.extra["id"][1:].tolist()
    assert [len(one) for one in names] == [view.shape[1] for view in views]
    assert classes.tolist() == whole.classes[1:].tolist()
    for one, all_of_it in zip(views, whole.views, strict=True):
        np.testing.assert_array_equal(one, all_of_it[1:])


@pytest.mark.slow
def test_cells_are_prepared_as_stated(omics_dir):
    """citeseq_pbmc by dense matrices."""
    data = load_dataset("citeseq_pbmc")
    rna = read_r(omics_dir / "citeseq_RNA.rds")["citeseq_RNA"]
    assert sparse.issparse(rna.values)
    assert rna.values.shape == (33538, 1372)
    place = {one: i for i, one in enumerate(rna.columns)}
    counts = rna.values[:, [place[one] for one in data.extra["id"]]].tocsr()
    counts = counts[counts.sum(axis=1) > 0].toarray().T  # genes without counts add nothing
    logs = np.log1p(counts / counts.sum(axis=1, keepdims=True) * 10_000)
    dispersion = logs.var(axis=0) / logs.mean(axis=0)
    logs = logs[:, np.argsort(-dispersion)[:2000]]
    centered = logs - logs.mean(axis=0)
    energy, vectors = np.linalg.eigh(centered @ centered.T)
    np.testing.assert_allclose((data.views[0] ** 2).sum(axis=0), energy[: -20 - 1 : -1])
    overlap = np.abs(vectors[:, : -20 - 1 : -1].T @ data.views[0]) / np.sqrt(energy[: -20 - 1 : -1])
    np.testing.assert_allclose(np.diag(overlap), 1)

    proteins = read_r(omics_dir / "citeseq_Protein.rds")["citeseq_Protein"]
    first = np.log1p(proteins.values[:, [place[data.extra["id"][0]]]].toarray().ravel())
    np.testing.assert_allclose(data.views[1][0], first - first.mean())


def test_first_component_of_the_regions_is_the_depth(omics_dir):
    """Why it is left out: it says how many counts a cell has. The others do not."""
    counts = sparse.csr_array(sparse.load_npz(omics_dir / "snare_RxC1.npz").T, dtype=float)
    depth = np.log(counts.sum(axis=1))
    first = sparse.linalg.svds(tf_idf(counts), k=1, random_state=0)[0][:, 0]
    assert abs(np.corrcoef(depth, first)[0, 1]) > 0.9
    regions = load_dataset("snare_cortex").views[1]
    assert max(abs(np.corrcoef(depth, column)[0, 1]) for column in regions.T) < 0.3


def test_components_are_the_same_every_time_and_have_a_sign():
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((60, 90), density=0.2, rng=rng, format="csr")
    for reduce in (principal_components, latent_semantic):
        one = reduce(matrix, 5)
        np.testing.assert_array_equal(one, reduce(matrix, 5))
        np.testing.assert_allclose(one, reduce(matrix[::-1], 5)[::-1], atol=1e-10)
    dense = matrix.toarray()
    U, s, _ = np.linalg.svd(dense)
    found = latent_semantic(matrix, 5)
    np.testing.assert_allclose(np.abs(found), np.abs(U[:, 1:6] * s[1:6]), atol=1e-10)


def test_preparation_of_counts():
    counts = sparse.csr_array([[1.0, 3.0, 0.0], [0.0, 2.0, 0.0]])
    expected = np.log1p([[2500, 7500, 0], [0, 10_000, 0]])
    np.testing.assert_allclose(log_normalized(counts).toarray(), expected)
    # Shares of the cell times cells over the total of the region; the third has no counts.
    expected = np.log1p([[2500 * 2 / 1, 7500 * 2 / 5], [0, 10_000 * 2 / 5]])
    np.testing.assert_allclose(tf_idf(counts).toarray(), expected)
    ratio = centered_log_ratio(counts)
    np.testing.assert_allclose(ratio.sum(axis=1), 0, atol=1e-15)
    np.testing.assert_allclose(ratio[0, 1] - ratio[0, 0], np.log(4 / 2))


def test_a_part_of_the_files(omics_dir, monkeypatch, tmp_path):
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path))
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path))
    for name in ("gbm_GeneExp.rda", "gbm_time.rda"):
        (tmp_path / name).write_bytes((omics_dir / name).read_bytes())
    with pytest.raises(
        FileNotFoundError,
        match=r"gbm \(gbm_miRNAExp\.rda, gbm_status\.rda\) is neither in .* data fetch gbm`",
    ):
        load_dataset("gbm")


def test_wrong_contents(omics_dir, monkeypatch, tmp_path):
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path))
    (tmp_path / "nci60.rda").write_bytes((omics_dir / "nutrimouse.rda").read_bytes())
    with pytest.raises(ValueError, match=r"nci60\.rda does not hold nci60: KeyError"):
        load_dataset("nci60")
    (tmp_path / "nci60.rda").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"nci60\.rda cannot be read as an R file"):
        load_dataset("nci60")


def test_without_rdata_the_extra_is_named(omics_dir, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(ImportError, match=r'^nci60\.rda needs rdata: pip install "polyspan\[r\]"$'):
        load_dataset("nci60")
    assert load_dataset("brca_pam50").n_clusters == 5  # text files
