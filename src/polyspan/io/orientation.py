"""Which way a table lies: samples in rows, or features in rows, as is common in genomics."""

import re
from collections.abc import Mapping, Sequence

from polyspan.runtime.messages import quoted, setting

_FEATURES = (
    "gene|feature|probe|probeset|transcript|protein|peptide|metabolite|lipid|compound|mirna|mrna|"
    "cpg|marker|analyte|antibody|taxon|otu|asv|snp|locus|region|peak|variable|pathway"
)
FEATURE_NAME = re.compile(
    f"((ensembl|entrez|hgnc|uniprot|refseq|affy|ilmn|gene)?({_FEATURES})?(id|name|symbol)?s?)"
)
_PLAIN_IDS = ("", "id", "ids", "name", "names")
# Names that tables of different things may share by chance: x0, V1, column3, PC_2, 17, a.
_GENERIC = re.compile(
    r"[a-z]|((x|v|f|z|col|column|var|variable|feat|feature|dim|dimension|pc|comp|component|factor|"
    r"lsi|lda|umap|tsne|emb|latent|mean|sd|std|min|max|median)?[ _.:-]*\d*(\.\d+)?)",
    re.IGNORECASE,
)
LABELS = re.compile(
    "truth|truelabel|labels?|class(es)?|targets?|groups?|clusters?|subtypes?|diagnos[ie]s|"
    "celltypes?|phenotype"
)
NOTED = re.compile(
    "batch|plate|age|sex|gender|(os|pfs|pfi|dfs|dfi|dss|rfs|survival)(time|days|months|status|event)"
    "?|vitalstatus|event|died|death|daysto(death|lastfollowup)|pam50.*|(tumou?r)?(stage|grade)|"
    "relapse|recurrence|outcome|response"
)
MANY_ROWS, TIMES = 500, 5  # when a table seems to have features in rows


def is_feature_name(name: str) -> bool:
    """Whether a column with this name holds names of features.

    Examples
    --------
    >>> is_feature_name("Gene Symbol"), is_feature_name("probe_id"), is_feature_name("id")
    (True, True, False)
    """
    plain = _plain(name)
    return plain not in _PLAIN_IDS and bool(FEATURE_NAME.fullmatch(plain))


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def check_rows(
    columns: Mapping[str, Sequence[str]],
    ids: Mapping[str, str | None],
    shapes: Mapping[str, tuple[int, int]],
    notes: list[str],
) -> None:
    """Refuse tables that seem to have their samples in columns; a mere suspicion is a note.

    ``columns`` are the features of every table, ``ids`` the names of their id columns.

    Examples
    --------
    >>> names = {"a.csv": ["anna", "bert", "carl"], "b.csv": ["bert", "anna", "carl"]}
    >>> check_rows(names, {}, {}, [])
    Traceback (most recent call last):
    ...
    ValueError: a.csv and b.csv share 3 of 3 column names ('anna', 'bert' and 1 more), as if ...
    """
    for file, name in ids.items():
        if name and is_feature_name(name):
            raise features_in_rows(file, name)
    check_shared(columns, _turn())
    if shapes and all(n >= MANY_ROWS and n >= TIMES * d for n, d in shapes.values()):
        notes.append(
            "every table has many more rows than columns; rows are taken to be the samples: if "
            f"they are features, use {setting('samples', 'columns')}"
        )


def _turn() -> str:
    columns, rows = (setting("samples", where) for where in ("columns", "rows"))
    return f"use {columns} if the samples are in the columns, or {rows} if not"


def features_in_rows(file: str, name: str) -> ValueError:
    """The error for a first column that names features."""
    return ValueError(
        f"{file}: the column {name!r} names features, as if they were the samples: {_turn()}"
    )


def check_shared(columns: Mapping[str, Sequence[str]], turn: str) -> None:
    """Refuse tables that share most of their column names, as if these were the samples.

    Names that tables of different things may share by chance do not count; ``turn`` says what to
    do.

    Examples
    --------
    >>> check_shared({"0": ["anna", "bert"], "1": ["bert", "anna"]}, "turn them")
    Traceback (most recent call last):
    ...
    ValueError: 0 and 1 share 2 of 2 column names ('anna', 'bert'), as if ...: turn them
    >>> check_shared({"0": ["x1", "x2"], "1": ["x1", "x2"]}, "turn them")
    """
    if len(columns) < 2:
        return
    sets = [set(names) for names in columns.values()]
    shared, least = set.intersection(*sets), min(map(len, sets))
    telling = [name for name in next(iter(columns.values())) if name in shared]
    telling = [name for name in telling if not _GENERIC.fullmatch(name)]
    if len(telling) > max(1, least / 2):
        raise ValueError(
            f"{' and '.join(columns)} share {len(telling)} of {least} column names "
            f"({quoted(telling, 2)}), as if the columns were the samples: {turn}"
        )


def named_like(names: Sequence[str], words: re.Pattern[str]) -> list[str]:
    """Those of the names that are one of the words, whatever their case and punctuation.

    Examples
    --------
    >>> named_like(["height", "Cell_Type"], LABELS)
    ['Cell_Type']
    """
    return [name for name in names if words.fullmatch(_plain(name))]


def _may_hold(known: Sequence[str]) -> str:
    what = f"columns {quoted(known)}" if len(known) > 1 else f"column {known[0]!r}"
    return f"{what} may hold known classes, which would decide the clusters"


def check_columns(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Refuse tables in memory as `check_labels` refuses files; returns what to tell.

    Examples
    --------
    >>> check_columns({"view 0": ["height", "age"]})
    ["view 0: column 'age' is used as a feature; ... should not follow it, drop it."]
    """
    for view, names in columns.items():
        if known := named_like(names, LABELS):
            raise ValueError(
                f"{view}: {_may_hold(known)}: drop from the table, or use like any other with "
                f"fit(load_views(X, keep={known!r})) (load_views is in polyspan.datasets)."
            )
    return [
        f"{view}: column {name!r} is used as a feature; if the clusters should not follow it, "
        "drop it."
        for view, names in columns.items()
        for name in named_like(names, NOTED)
    ]


def check_labels(file: str, names: Sequence[str], keep: Sequence[str], notes: list[str]) -> None:
    """Refuse features whose names say that they are known classes, unless they are to be kept.

    Examples
    --------
    >>> check_labels("a.csv", ["height", "subtype"], [], [])
    Traceback (most recent call last):
    ...
    ValueError: a.csv: column 'subtype' may hold known classes, which would decide the clusters: ...
    """
    names = [name for name in names if name not in keep]
    if known := named_like(names, LABELS):
        drop, hold = setting("drop", known), setting("keep", known)
        raise ValueError(
            f"{file}: {_may_hold(known)}: leave out with {drop}, or use like any other with {hold}"
        )
    for name in named_like(names, NOTED):
        notes.append(
            f"{file}: column {name!r} is used as a feature; if the clusters should not follow it, "
            f"leave it out: {setting('drop', [name])}"
        )
