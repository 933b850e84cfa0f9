"""Workers for chunks of rows: threads of this process, or a Dask cluster.

A method for many samples is a few functions of one chunk and a few sums over all chunks. Only this
module decides whether they run one after another, in threads or on a Dask cluster: both
`Threads` and `Cluster` have ``map`` (one call per chunk), ``submit`` (one call) and ``collect``
(the results). The functions are pure, so a call that is lost with its machine can be repeated.
"""

from collections.abc import Callable, Sequence
from typing import Any

from polyspan.chunked.sources import is_dask
from polyspan.runtime.messages import warn_user
from polyspan.runtime.threads import BLOCK, Span, Threads, bounds

__all__ = ["Cluster", "Threads", "active_client", "bounds", "refuse_device", "workers_for"]


class Cluster:
    """Process chunks on the cluster of a ``distributed.Client``.

    What `map` and `submit` return stays on the workers until it is collected; if a worker is lost,
    Dask repeats the calls that produced what it held.
    """

    remote = True

    def __init__(self, client: Any) -> None:
        self.client = client
        self._threads = sum(client.nthreads().values())

    def columns(self, m: int) -> list[Span]:
        """Split m columns into blocks, one per thread of the cluster unless they would be tiny."""
        return bounds(m, min(BLOCK, max(4, -(-m // max(self._threads, 1)))))

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, function: Callable[..., Any], *lists: Sequence[Any], **fixed: Any) -> list[Any]:
        """Call ``function`` with the first of every list, then with the second, and so on."""
        return [self.submit(function, *a, **fixed) for a in zip(*lists, strict=True)]

    def submit(self, function: Callable[..., Any], *args: Any, **fixed: Any) -> Any:
        """Call ``function`` once."""
        return self.client.submit(function, *args, **fixed, pure=False)

    def share(self, value: Any) -> Any:
        """Send a value once for many calls; unlike scattered data, it survives a lost worker."""
        return self.submit(lambda same: same, value)

    def collect(self, results: Any) -> Any:
        """Bring results to this process."""
        return self.client.gather(results)


def active_client(views: Sequence[Any]) -> Any:
    """Return the active ``distributed.Client`` when a view is a dask array, else None.

    Waits until its cluster has a worker, and says so.
    """
    if not any(is_dask(view) for view in views):
        return None
    try:
        from distributed import get_client

        client = get_client()
    except (ImportError, ValueError):
        return None
    if not client.scheduler_info(n_workers=-1)["workers"]:
        warn_user("The Dask cluster has no workers yet: waiting for the first of them.")
        client.wait_for_workers(1)
    return client


def workers_for(views: Sequence[Any]) -> Threads | Cluster:
    """The active cluster when a view is a dask array, else threads of this process.

    Examples
    --------
    >>> import numpy as np
    >>> type(workers_for([np.eye(3)])).__name__
    'Threads'
    """
    client = active_client(views)
    return Threads() if client is None else Cluster(client)


def refuse_device(method: str, device: str | None) -> None:
    """Raise if a device is asked for on a Dask cluster.

    Examples
    --------
    >>> refuse_device("AnchorGRMSC", "cuda")
    Traceback (most recent call last):
    ...
    ValueError: AnchorGRMSC: device='cuda' is for one machine, not for a Dask cluster: ...
    """
    if device is not None:
        raise ValueError(
            f"{method}: device={device!r} is for one machine, not for a Dask cluster: use "
            "device=None, or views in memory or in files."
        )
