"""What several fits on the same data have in common, computed once.

Inside ``with sharing():`` the estimators keep reductions, graphs, factorisations and solutions,
and a later fit that needs the same takes them from there. Data are recognised by their content.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_numpy_array

from polyspan.solvers.arrays import Array

T = TypeVar("T")


class Store:
    """The parts kept so far, the least recently used one first.

    Attributes
    ----------
    saved : float
        Seconds that the parts taken from here had cost when they were made: what a fit would
        have taken longer alone.
    """

    def __init__(self, limit: int) -> None:
        self.saved = 0.0
        self.limit, self.size = limit, 0
        self.parts: OrderedDict[Hashable, tuple[object, int, float]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T], size: int) -> T:
        """Return the part of this key, made now if it is not here."""
        if key in self.parts:
            self.parts.move_to_end(key)
            value, _, seconds = self.parts[key]
            self.saved += seconds
            return value  # type: ignore[return-value]
        started, before = time.perf_counter(), self.saved
        value = make()
        # A part made with the help of others would have cost their time too.
        seconds = time.perf_counter() - started + self.saved - before
        if size <= self.limit:
            self.parts[key] = value, size, seconds
            self.size += size
        while self.size > self.limit:
            _, (_, freed, _) = self.parts.popitem(last=False)
            self.size -= freed
        return value


_active: ContextVar[Store | None] = ContextVar("polyspan_sharing", default=None)


@contextmanager
def sharing(limit: int = 2**30, store: Store | None = None) -> Iterator[Store]:
    """Share what fits have in common as long as the ``with`` block lasts.

    Results are the same as without. The shared arrays belong to several estimators: do not
    change ``representation_`` in place. A block inside another goes on with what that one has.

    Parameters
    ----------
    limit : int, default=2**30
        Bytes to keep at most; the least recently used parts go first. The limit of a block around
        this one holds instead.
    store : Store, optional
        That of an earlier block, to go on with.

    Yields
    ------
    Store
        Its ``saved`` counts the seconds that sharing has saved.

    Examples
    --------
    >>> from polyspan import GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> views = make_subspaces(60, 3, random_state=0).views
    >>> with sharing() as store:
    ...     for lam1 in (1.0, 10.0):  # one factorisation serves both
    ...         model = GRMSC(3, lam1=lam1, random_state=0).fit(views)
    >>> store.saved > 0
    True
    """
    if store is None:
        store = _active.get() or Store(limit)
    token = _active.set(store)
    try:
        yield store
    finally:
        _active.reset(token)


def fingerprint(arrays: Sequence[Array]) -> str | None:
    """Hash of the content of NumPy or sparse arrays; None for others, and outside `sharing`."""
    known = all(is_numpy_array(X) or sp.issparse(X) for X in arrays)
    if _active.get() is None or not known:
        return None
    total = hashlib.blake2b(digest_size=16)
    for X in arrays:
        total.update(repr((type(X).__name__, X.shape, X.dtype.str)).encode())
        for part in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
            total.update(np.ascontiguousarray(part).data)
    return total.hexdigest()


def shared(key: tuple[Hashable, ...], make: Callable[[], T], size: int) -> T:
    """Return ``make()``, or what it gave for this key before, inside `sharing`.

    ``size`` is about how many bytes the result holds. A key with a None at its head, an unknown
    fingerprint, is never shared.
    """
    store = _active.get()
    return make() if store is None or key[0] is None else store.get(key, make, size)
