"""Files that could do harm: what would fill the memory, links to other files, entities in XML."""

import zipfile
from pathlib import Path
from typing import Any

from polyspan.runtime.memory import available_memory
from polyspan.runtime.messages import one_line

EXCEL_TIMES = 4  # memory of a workbook's cells, in units of its unpacked size


def check_workbook(path: Path) -> None:
    """Refuse an Excel file that declares XML entities, or that does not fit into memory."""
    if not zipfile.is_zipfile(path):
        return  # left to the reader
    free = available_memory()
    with zipfile.ZipFile(path) as archive:
        need = EXCEL_TIMES * sum(one.file_size for one in archive.infolist())
        if free is not None and need > free:
            raise MemoryError(
                f"{path} needs about {need / 2**30:.1f} GiB of memory when it is unpacked, but "
                f"{free / 2**30:.1f} GiB are free: save its sheets as CSV"
            )
        for name in archive.namelist():
            if name.endswith((".xml", ".rels")):
                with archive.open(name) as stream:
                    if b"<!DOCTYPE" in stream.read(4096).upper():
                        raise ValueError(
                            f"{path} declares XML entities, which no spreadsheet needs: save it "
                            "again with a spreadsheet program"
                        )


def check_links(path: Path, h5py: Any) -> None:
    """Refuse an HDF5 file that takes data from other files."""

    def check(name: str, item: Any) -> str | None:
        if isinstance(item, h5py.Group):
            for key in item:
                if isinstance(item.get(key, getlink=True), h5py.ExternalLink):
                    return f"{name}/{key}".lstrip("/")
        elif item.external or item.is_virtual:
            return name
        return None

    try:
        file = h5py.File(path, "r")
    except OSError:
        return  # left to the reader
    with file:
        try:
            found = check("", file) or file.visititems(check)
        except Exception as error:  # a damaged file may raise any exception
            raise ValueError(f"{path} is damaged: {one_line(error)}") from error
        if found is not None:
            raise ValueError(
                f"{path}: {found!r} is a link to another file, which is not followed: save all "
                "data in one file"
            )
