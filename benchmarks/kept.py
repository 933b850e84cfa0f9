"""Labels of the members of a consensus, kept in a folder, so that a new rule needs no new fits."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from polyspan.selection import pool


@contextmanager
def kept_members(folder: Path | None, key: str) -> Iterator[None]:
    """Within this block the members of a consensus come from ``folder/key.npz``.

    If there is no such file, they are fitted and written to it. Without a folder nothing changes.
    A file with other members than those asked for is refused.
    """
    fit_members = pool.fit_members
    if folder is None:
        yield
        return

    def read_or_fit(members: Any, views: Any, params: Any, **options: Any) -> Any:
        path = folder / f"{key}.npz"
        if path.exists():
            with np.load(path) as file:
                rows, labels = json.loads(str(file["rows"])), file["labels"]
            if [_name(pool.new_row(one)) for one in members] != [_name(row) for row in rows]:
                raise ValueError(f"{path} has other members: remove it to fit them")
            pairs = zip(members, rows, strict=True)
            ran = [(member, row) for member, row in pairs if row["status"] == "ok"]
            models = [clone(member.estimator).set_params(**params) for member, _ in ran]
            return pool.Fits(rows, [row for _, row in ran], labels.astype(int), models)
        fits = fit_members(members, views, params, **options)
        folder.mkdir(parents=True, exist_ok=True)
        labels = fits.labels.astype(np.int16)
        np.savez_compressed(path, rows=json.dumps(fits.table), labels=labels)
        return fits

    pool.fit_members = read_or_fit  # type: ignore[assignment]
    try:
        yield
    finally:
        pool.fit_members = fit_members


def _name(row: dict[str, Any]) -> str:
    """The member without the device, as text."""
    setting = {k: v for k, v in row["setting"].items() if k != "device"}
    return row["method"] + json.dumps(setting, sort_keys=True)
