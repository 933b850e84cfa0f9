"""Compute once what several fits on the same data have in common.

Inside ``with sharing():`` the estimators keep reductions, graphs, factorizations and solutions,
and later fits that need the same ones reuse them. Data are recognized by their content.
"""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_numpy_array, is_torch_array

from polyspan.runtime.arrays import Array, to_numpy

D = TypeVar("D", bound=Hashable)
T = TypeVar("T")


class Store:
    """The parts kept so far, least recently used first.

    Attributes
    ----------
    saved : float
        Seconds saved so far: what the reused parts took when they were computed.
    """

    def __init__(self, limit: int) -> None:
        self.saved = 0.0
        self.limit, self.size = limit, 0
        self.parts: OrderedDict[Hashable, tuple[object, int, float]] = OrderedDict()
        self._lock = threading.Lock()  # `asyncio.to_thread` gives one store to several threads
        self._own = threading.local()  # what the present thread has saved

    def get(self, key: Hashable, make: Callable[[], T], size: int | None) -> T:
        """Return the part with this key, computing it now if it is not stored."""
        with self._lock:
            if key in self.parts:
                self.parts.move_to_end(key)
                value, _, seconds = self.parts[key]
                self.saved += seconds
                self._own.saved = self._saved_here() + seconds
                return value  # type: ignore[return-value]
        started, before = time.perf_counter(), self._saved_here()
        value = make()
        # A part that reused others would have cost their time too.
        seconds = time.perf_counter() - started + self._saved_here() - before
        size = held_bytes(value) if size is None else size
        with self._lock:
            if size <= self.limit and key not in self.parts:  # another thread may have been faster
                self.parts[key] = value, size, seconds
                self.size += size
            while self.size > self.limit:
                _, (_, freed, _) = self.parts.popitem(last=False)
                self.size -= freed
        return value

    def _saved_here(self) -> float:
        return getattr(self._own, "saved", 0.0)


# The store of the enclosing `sharing` block, or None.
active: ContextVar[Store | None] = ContextVar("polyspan_sharing", default=None)


@contextmanager
def sharing(limit: int = 2**30, store: Store | None = None) -> Iterator[Store]:
    """Share what fits have in common within the ``with`` block.

    Results are the same as without sharing. The shared arrays belong to several estimators: do not
    change ``representation_`` in place. A block inside another uses the store of the outer one.

    Parameters
    ----------
    limit : int, default=2**30
        Maximum number of bytes to keep; the least recently used parts are dropped first. Inside
        another block, that block's limit applies instead.
    store : Store, optional
        The store of an earlier block, to reuse its parts.

    Yields
    ------
    Store
        Its ``saved`` is the number of seconds that sharing has saved.

    Examples
    --------
    >>> from polyspan import GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> views = make_subspaces(60, 3, random_state=0).views
    >>> with sharing() as store:
    ...     for lam1 in (1.0, 10.0):  # one factorization serves both
    ...         model = GRMSC(3, lam1=lam1, random_state=0).fit(views)
    >>> store.saved > 0
    True
    """
    if store is None:
        store = active.get() or Store(limit)
    token = active.set(store)
    try:
        yield store
    finally:
        active.reset(token)


def held_bytes(value: object) -> int:
    """Bytes of all arrays in a value, also within tuples, lists, dictionaries and dataclasses.

    Examples
    --------
    >>> held_bytes((np.zeros(3), {"a": sp.csr_array(np.eye(2))}, "text"))
    60
    """
    if sp.issparse(value):
        value = [getattr(value, name, None) for name in ("data", "indices", "indptr")]
    elif isinstance(value, dict):
        value = list(value.values())
    elif is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name, None) for field in fields(value)]
    if isinstance(value, list | tuple):
        return sum(map(held_bytes, value))
    return int(getattr(value, "nbytes", 0))


def fingerprint(arrays: Sequence[Array]) -> str | None:
    """Hash the content of NumPy, torch or sparse arrays; None for arrays of other libraries."""
    total = hashlib.sha1(usedforsecurity=False)  # chips have it built in: faster than the others
    for X in arrays:
        if sp.issparse(X):
            parts = [X.data, X.indices, X.indptr]
        elif is_numpy_array(X) or is_torch_array(X):
            parts = [to_numpy(X)]
        else:
            return None
        place = str(getattr(X, "device", "cpu"))
        total.update(repr((type(X).__name__, tuple(X.shape), str(X.dtype), place)).encode())
        for part in parts:
            total.update(np.ascontiguousarray(part).data)
    return total.hexdigest()


def shared(
    make: Callable[[D, Sequence[Array]], T],
    what: D,
    arrays: Sequence[Array],
    size: int | None,
    instead: Callable[[], T] | None = None,
) -> T:
    """Return ``make(what, arrays)``, or its earlier result inside `sharing`.

    ``what`` is a hashable description of what to compute. It and the content of the arrays are the
    only inputs of ``make``, and together they are the key, so that the key is always complete.

    Parameters
    ----------
    make : function
        Must be a pure function of its arguments.
    what : hashable
        All parameters.
    arrays : list of arrays
        All data.
    size : int or None
        Approximate size of the result in bytes; None counts its arrays.
    instead : function, optional
        Computes the same result with less work; called when nothing is shared.

    Examples
    --------
    >>> def power(exponent, arrays):
    ...     print("made")
    ...     return arrays[0] ** exponent
    >>> with sharing():
    ...     _ = [shared(power, exponent, [np.eye(2)], 32) for exponent in (2, 3, 2)]
    made
    made
    """
    store = active.get()
    content = None if store is None else fingerprint(arrays)
    if store is None or content is None:
        return make(what, arrays) if instead is None else instead()
    key = make.__module__, make.__qualname__, what, content
    return store.get(key, lambda: make(what, arrays), size)
