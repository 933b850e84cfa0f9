"""How far above the optimum the convex methods end, with their default and with slow penalties.

    python benchmarks/optimum.py                  a table in Markdown (less than a minute)
    python benchmarks/optimum.py --method LRR     some of its lines

An augmented Lagrangian whose penalty mu grows fast stops when the constraints hold, which may be
before the objective is at its minimum. Each method solves the same small problem, the first 40
texts of 3-Sources scaled to unit length, three times: with its default growth; with the slow one
that its docstring names; and with one that is slower still, which stands for the optimum. A figure
is the excess of the objective over the least of the three. Download the data first: `polyspan data
fetch three_sources`. All methods together, it keeps the table for docs/methods.md
(page_tables.py); `make methods` then writes the page.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from page_tables import show
from sklearn.exceptions import ConvergenceWarning

from polyspan.datasets import load_dataset
from polyspan.graphs.proximity import graph_laplacian, median_kernel
from polyspan.methods.csmsc import solve_csmsc
from polyspan.methods.grmsc import solve_grmsc
from polyspan.methods.lrr import solve_lrr
from polyspan.methods.ltmsc import solve_ltmsc, unfold
from polyspan.methods.mlrssc import solve_mlrssc
from polyspan.methods.rmsc import random_walk, solve_rmsc
from polyspan.methods.tsvdmsc import solve_tsvdmsc
from polyspan.solvers.loop import Run

SLOWEST = {"rho": 1.003}
HEADER = ("method", "setting", "default", "iterations", "slow", "iterations ", "slow growth")


class Problem(NamedTuple):
    """A method's problem: ``solve(**penalty, run)``, its objective, its limits, its slow growth."""

    name: str
    setting: str
    solve: Callable[..., Any]
    objective: Callable[[Any], float]
    max_iter: int
    tol: float
    slow: dict[str, float]


def to_dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def nuclear(A: np.ndarray) -> float:
    return float(np.linalg.norm(A, "nuc"))


def lengths(*Es: np.ndarray) -> float:
    """Sum of the lengths of the columns of the matrices, stacked."""
    return float(np.linalg.norm(np.vstack(Es), axis=0).sum())


def problems() -> list[Problem]:
    """The convex methods, each with its default weights."""
    Xs = [to_dense(X[:40]) for X in load_dataset("three_sources").views]
    Xs = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in Xs]
    L = graph_laplacian(Xs, 10)
    Ts = [random_walk(median_kernel(X)) for X in Xs]
    Ks = [100 * X @ X.T for X in Xs]

    def errors(Zs: Any) -> list[np.ndarray]:
        return [X.T - X.T @ Z for X, Z in zip(Xs, Zs, strict=True)]

    def grmsc(Z: Any) -> float:
        graph = 1000 * np.sum((Z @ (L + L.T)) * Z) / 2
        return nuclear(Z) + 100 * sum(map(lengths, errors([Z] * len(Xs)))) + float(graph)

    def tensor_norm(Z: Any) -> float:
        slices = np.fft.fft(Z, axis=1)
        return float(np.mean([nuclear(slices[:, i]) for i in range(40)]))

    def csmsc(found: Any) -> float:
        C, Ds = found
        own = 0.1 * sum(np.sum(D**2) for D in Ds)
        return sum(map(lengths, errors([C + D for D in Ds]))) + 0.1 * nuclear(C) + float(own)

    def ltmsc(Z: Any) -> float:
        return sum(nuclear(unfold(Z, u)) for u in (1, 2, 3)) + lengths(*errors(Z))

    def rmsc(P: Any) -> float:
        return nuclear(P) + 0.1 * float(sum(np.abs(T - P).sum() for T in Ts))

    def mlrssc(C: Any) -> float:
        Z = np.eye(40) - C
        return float(np.sum(Z * (Ks[0] @ Z))) / 2 + 0.3 * nuclear(C) + 0.7 * float(np.abs(C).sum())

    return [
        Problem(
            "GRMSC", "lam1=100, lam2=1000, k=10",
            lambda **p: solve_grmsc(Xs, L, lam1=100.0, lam2=1000.0, **p), grmsc,
            100, 1e-6, {"rho": 1.02, "mu0": 1.0},
        ),
        Problem(
            "LRR", "lam=0.5, view 1", lambda **p: solve_lrr(Xs[0], lam=0.5, **p),
            lambda Z: nuclear(Z) + 0.5 * lengths(errors([Z] * len(Xs))[0]),
            500, 1e-6, {"rho": 1.02, "mu0": 0.01},
        ),
        Problem(
            "RMSC", "lam=0.1", lambda **p: solve_rmsc(Ts, lam=0.1, **p), rmsc,
            100, 1e-6, {"rho": 1.02, "mu0": 0.01},
        ),
        Problem(
            "MLRSSC", "lam=100, view 1",
            lambda **p: solve_mlrssc(Ks[:1], rank_share=0.3, lam_agreement=0.3, **p), mlrssc,
            100, 1e-5, {"rho": 1.02, "mu0": 1.0},
        ),
        Problem(
            "CSMSC", "lam_c=0.1, lam_d=0.1, as_released=False",
            lambda **p: solve_csmsc(Xs, lam_c=0.1, lam_d=0.1, as_released=False, **p), csmsc,
            400, 1e-7, {"rho": 1.02, "mu0": 0.01},
        ),
        Problem(
            "TSVDMSC", "lam=0.1", lambda **p: solve_tsvdmsc(Xs, lam=0.1, **p),
            lambda Z: tensor_norm(Z) + 0.1 * lengths(*errors(Z)),
            200, 1e-7, {"rho": 1.02, "mu0": 0.1},
        ),
        Problem(
            "LTMSC", "lam=1, lam_rank=1", lambda **p: solve_ltmsc(Xs, lam=1.0, **p), ltmsc,
            200, 1e-7, {"rho": 1.02, "mu0": 0.1},
        ),
    ]  # fmt: skip


def solved(one: Problem, penalty: dict[str, float], max_iter: int) -> tuple[float, int]:
    """Objective and number of iterations."""
    run = Run(one.name, max_iter, one.tol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = one.solve(**penalty, run=run)
    return one.objective(found), run.n_iter


def lines(chosen: Iterable[Problem]) -> Iterator[list[str]]:
    """Solve every problem three times, and yield its line of the table."""
    for one in chosen:
        default = solved(one, {}, one.max_iter)
        slow = solved(one, one.slow, 2000)
        least = min(default[0], slow[0], solved(one, one.slow | SLOWEST, 20_000)[0])
        cells = [
            (f"{100 * (value / least - 1):.2f}%", str(made)) for value, made in (default, slow)
        ]
        growth = ", ".join(f"{name}={value:g}" for name, value in one.slow.items())
        yield [one.name, one.setting, *cells[0], *cells[1], f"`{growth}, max_iter=2000`"]


def main(argv: list[str] | None = None) -> int:
    """Print the table, and keep it if it is the whole one."""
    parser = argparse.ArgumentParser(description="Excess of the objective over its minimum.")
    parser.add_argument("--method", nargs="+", metavar="NAME", help="default: all")
    args = parser.parse_args(argv)
    known = problems()
    names = [one.name for one in known]
    if unknown := sorted(set(args.method or []) - set(names)):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(names)}")
    chosen = [one for one in known if one.name in (args.method or names)]
    show(HEADER, lines(chosen), "optimum", args.method is None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
