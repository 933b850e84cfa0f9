"""Loaders of published single-cell data sets: counts per cell, prepared and reduced."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from polyspan.datasets.content import Content
from polyspan.io.readers import SparseTable, read_file, read_r

N_COMPONENTS = 20
N_GENES = 2_000  # of largest dispersion
CELL_TOTAL = 10_000  # counts of every cell after normalization


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
