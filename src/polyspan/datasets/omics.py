"""Loaders of published multi-omics data sets: several kinds of measurements of the same samples."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from polyspan.datasets.content import Content
from polyspan.io.readers import read_r


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
