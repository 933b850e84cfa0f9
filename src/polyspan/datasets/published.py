"""Loaders of published data sets: several kinds of measurements of the same samples or cells."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from polyspan.io.readers import SparseTable, read_file, read_r

N_COMPONENTS = 20
N_GENES = 2_000  # of largest dispersion
CELL_TOTAL = 10_000  # counts of every cell after normalization


class Content(NamedTuple):
    """What the loader of one published data set returns: views and extra as in `Dataset`."""

    views: list[Any]
    classes: ArrayLike | None  # numbers or words; None when they are not known
    extra: dict[str, NDArray[Any]]
    columns: Sequence[list[str]] = ()


def breast_tcga(path: Path) -> Content:
    """The training samples of mixOmics' breast.TCGA; the test samples lack the proteins."""
    train = read_r(path)["breast.TCGA"]["data.train"]
    tables = [train[view] for view in ("mrna", "mirna", "protein")]
    return _matched(tables, "subtype", {"subtype": _by_row(tables[0], train["subtype"])})


def nutrimouse(path: Path) -> Content:
    """The two genotypes of mixOmics' nutrimouse."""
    return _nutrimouse(path, "genotype")


def nutrimouse_diet(path: Path) -> Content:
    """The same mice as `nutrimouse`, in classes of one genotype and one diet."""
    return _nutrimouse(path, "genotype_diet")


def _nutrimouse(path: Path, classes: str) -> Content:
    mice = read_r(path)["nutrimouse"]
    pairs = [" ".join(pair) for pair in zip(mice["genotype"], mice["diet"], strict=True)]
    known = {"genotype": mice["genotype"], "diet": mice["diet"], "genotype_diet": pairs}
    tables = [mice["gene"], mice["lipid"]]
    by_mouse = {name: _by_row(tables[0], values) for name, values in known.items()}
    return _matched(tables, classes, by_mouse)


def nci60(path: Path) -> Content:
    """The four arrays of omicade4's NCI60_4arrays; names like BR.MCF7 begin with the tissue."""
    arrays = read_r(path)["NCI60_4arrays"]
    tables = [arrays[view].T for view in ("agilent", "hgu133", "hgu133p2", "hgu95")]
    lines = tables[0].index
    return _matched(tables, "tissue", {"tissue": {line: line.split(".")[0] for line in lines}})


def brca_pam50(mrna: Path, mirna: Path, protein: Path, cnv: Path, types: Path) -> Content:
    """Breast cancers in four tables with features in rows, and their PAM50 subtypes."""
    tables = [_read_turned(path) for path in (mrna, mirna, protein, cnv)]
    tables[1] = np.log2(tables[1] + 1)
    known = pd.read_csv(types, sep="\t", index_col=0)["PAM50"].to_dict()
    return _matched(tables, "pam50", {"pam50": known})


def gbm(genes: Path, mirna: Path, time: Path, status: Path) -> Content:
    """The glioblastomas of CancerSubtypes: no classes, but survival."""
    tables = [read_r(genes)["GeneExp"].T, read_r(mirna)["miRNAExp"].T]
    known = {"time": read_r(time)["time"], "status": read_r(status)["status"]}
    by_patient = {name: _by_row(tables[0], values) for name, values in known.items()}
    return _matched(tables, None, by_patient)


def _read_turned(path: Path) -> pd.DataFrame:
    """A text table with features in rows, as samples in rows."""
    return pd.read_csv(path, sep="\t", index_col=0, float_precision="round_trip").T


def _by_row(table: pd.DataFrame, values: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(map(str, table.index), values, strict=True))


def _matched(
    tables: Sequence[pd.DataFrame], classes: str | None, known: Mapping[str, Mapping[str, Any]]
) -> Content:
    """The samples in all tables for which all is known, in the order of the first table."""
    tables = [table.set_axis(table.index.astype(str)) for table in tables]
    places = [table.index for table in tables]
    ids = [one for one in places[0] if all(one in there for there in (*places, *known.values()))]
    views = [np.ascontiguousarray(table.loc[ids], dtype=float) for table in tables]
    extra = {name: np.array([values[one] for one in ids]) for name, values in known.items()}
    names = [list(table.columns) for table in tables]
    known_classes = extra[classes] if classes else None
    return Content(views, known_classes, {"id": np.array(ids), **extra}, names)


# ---- single cells: counts per cell, prepared and reduced -----------------------------------------


def citeseq_pbmc(rna: Path, protein: Path, truth: Path) -> Content:
    """Blood cells of known type by genes and surface proteins (CITE-seq)."""
    genes, proteins = (read_r(path)[path.stem].T for path in (rna, protein))
    known = pd.read_csv(truth, dtype=str)
    types = dict(zip(known["Barcode"], known["trueType"], strict=True))
    cells = [one for one in genes.rows if types.get(one, "unknown") != "unknown"]
    counts, marks = (_rows(table, cells) for table in (genes, proteins))
    expressed = most_dispersed(log_normalized(counts))
    views = [principal_components(expressed), centered_log_ratio(marks)]
    classes = np.array([types[one] for one in cells])
    return Content(views, classes, {"id": np.array(cells), "type": classes})


def snare_cortex(genes: Path, regions: Path, cells: Path) -> Content:
    """Cells of the mouse cortex by genes and open chromatin regions (SNARE-seq)."""
    expressed, open_regions = (
        sparse.csr_array(read_file(path)[path.stem].T, dtype=float) for path in (genes, regions)
    )
    views = [
        principal_components(log_normalized(expressed)),
        latent_semantic(tf_idf(open_regions)),
    ]
    known = pd.read_csv(cells, dtype=str)
    classes = known["cluster (remapped)"].to_numpy(str)
    return Content(views, classes, {"id": known.iloc[:, 0].to_numpy(str), "type": classes})


def _rows(table: SparseTable | pd.DataFrame, wanted: list[str]) -> Any:
    if isinstance(table, pd.DataFrame):
        return table.loc[wanted].to_numpy()
    place = {one: i for i, one in enumerate(table.rows or [])}
    return table.values[[place[one] for one in wanted]]


def log_normalized(counts: Any) -> Any:
    """Sparse counts divided by the cell's total, times 10,000, as log(x + 1).

    Examples
    --------
    >>> log_normalized(sparse.csr_array([[1.0, 3.0], [0.0, 2.0]])).toarray().round(3)
    array([[7.824, 8.923],
           [0.   , 9.21 ]])
    """
    return np.log1p(CELL_TOTAL * _shares(counts))


def tf_idf(counts: Any) -> Any:
    """Sparse counts as log(1 + 10,000 x share of the cell's total x cells / the region's total).

    Regions without counts are left out.

    Examples
    --------
    >>> tf_idf(sparse.csr_array([[1.0, 1.0, 0.0], [0.0, 2.0, 0.0]])).toarray().round(3)
    array([[9.21 , 8.112],
           [0.   , 8.805]])
    """
    totals = counts.sum(axis=0)
    seen = totals > 0
    weights = sparse.diags_array(CELL_TOTAL * counts.shape[0] / totals[seen])
    return np.log1p(sparse.csr_array(_shares(counts)[:, seen] @ weights))


def _shares(counts: Any) -> Any:
    return sparse.csr_array(sparse.diags_array(1 / counts.sum(axis=1)) @ counts)


def centered_log_ratio(counts: Any) -> NDArray[np.float64]:
    """log(x + 1) of the counts, minus its mean over the cell.

    Examples
    --------
    >>> centered_log_ratio(np.array([[0.0, 1.0], [3.0, 3.0]])).round(3)
    array([[-0.347,  0.347],
           [ 0.   ,  0.   ]])
    """
    logs = np.log1p(counts.toarray() if sparse.issparse(counts) else counts)
    return logs - logs.mean(axis=1, keepdims=True)


def most_dispersed(matrix: Any, n: int = N_GENES) -> Any:
    """Return the n columns of a sparse matrix with the largest variance in units of their mean.

    Examples
    --------
    >>> counts = sparse.csr_array(np.array([[4.0, 2.0, 0.0], [0.0, 2.0, 1.0]]))
    >>> most_dispersed(counts, 2).toarray()
    array([[4., 0.],
           [0., 1.]])
    """
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    squares = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel()
    dispersion = (squares - mean**2) / np.where(mean > 0, mean, np.inf)
    return matrix[:, np.sort(np.argsort(-dispersion, kind="stable")[:n])]


def principal_components(matrix: Any, n: int = N_COMPONENTS) -> NDArray[np.float64]:
    """The first principal components of a sparse matrix, centered without becoming dense."""
    from sklearn.decomposition import PCA

    # ARPACK starts from a drawn vector, and scikit-learn fixes the signs.
    return PCA(n, svd_solver="arpack", random_state=0).fit_transform(matrix)


def latent_semantic(matrix: Any, n: int = N_COMPONENTS) -> NDArray[np.float64]:
    """Components 2 to n + 1 of a sparse, uncentered matrix; the first tells cell totals."""
    from sklearn.decomposition import TruncatedSVD

    svd = TruncatedSVD(n + 1, algorithm="arpack", random_state=0)
    return np.ascontiguousarray(svd.fit_transform(matrix)[:, 1:])


LOADERS = {
    loader.__name__: loader
    for loader in (
        *(breast_tcga, nutrimouse, nutrimouse_diet, nci60, brca_pam50, gbm),
        *(citeseq_pbmc, snare_cortex),
    )
}
