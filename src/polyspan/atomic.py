"""Writing a file whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a name to write to; when the block ends well the file takes the place of ``path``.

    Nobody sees a part of it, and a failure leaves nothing behind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.txt")
    ...     with replacing(path) as part:
    ...         _ = part.write_text("all of it")
    ...     path.read_text(), len(list(Path(folder).iterdir()))
    ('all of it', 1)
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")  # beside it: the move is one step
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
