import pytest
from sklearn.exceptions import ConvergenceWarning

from polyspan.solvers.loop import Run, watching


def halve(run, x=1.0):
    for _ in run:
        x /= 2
        run.check(size=x)
    return run


def test_stops_when_all_residuals_are_below_tol():
    run = Run("halving", 50, 0.1)
    for iteration in run:
        run.check(one=2.0**-iteration, two=4.0**-iteration)
    assert run.n_iter == 4  # 1/16 is the first below 0.1; two was there at iteration 2
    assert run.converged
    assert run.history == {"one": [0.5, 0.25, 0.125, 0.0625], "two": [4.0**-t for t in range(1, 5)]}


def test_tol_itself_is_not_below_tol():
    assert halve(Run("halving", 50, 0.25)).n_iter == 3


def test_a_record_complains_when_the_loop_did_not_converge():
    record = halve(Run("halving", 2, 1e-3)).record()
    assert (record["n_iter"], record["history"]) == (2, {"size": [0.5, 0.25]})
    (complaint,) = record["complaints"]
    match = r"^halving stopped after max_iter=2 iterations .* \(last residuals: size 2.5e-01\)"
    with pytest.raises(ConvergenceWarning, match=match):
        raise complaint


def test_converging_in_the_last_iteration_is_no_complaint():
    run = halve(Run("halving", 3, 0.2))
    assert (run.n_iter, run.converged, run.record()["complaints"]) == (3, True, ())


def test_nan_never_counts_as_converged():
    run = halve(Run("halving", 3, 0.5), float("nan"))
    assert not run.converged
    with pytest.raises(ConvergenceWarning, match="size nan"):
        raise run.record()["complaints"][0]


def test_verbose_prints_every_so_many_iterations_and_the_last(capsys):
    halve(Run("halving", 50, 0.04, verbose=2))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("iteration")[1].split()[0] for line in lines] == ["2", "4", "5"]
    assert lines[0].startswith("[halving] iteration   2  size 2.50e-01  ")
    assert lines[0].endswith("s left")


def test_silent_by_default(capsys):
    halve(Run("halving", 50, 0.1))
    assert capsys.readouterr().out == ""


def test_watching_sees_every_iteration_and_ends_with_its_block():
    seen = []
    with watching(lambda run: seen.append((run.name, run.n_iter, run.history["size"][-1]))):
        halve(Run("halving", 50, 0.2))
    halve(Run("halving", 50, 0.2))
    assert seen == [("halving", 1, 0.5), ("halving", 2, 0.25), ("halving", 3, 0.125)]


def test_watching_ends_when_its_block_fails():
    seen = []
    with pytest.raises(KeyError, match="stop"), watching(seen.append):
        raise KeyError("stop")
    halve(Run("halving", 50, 0.2))
    assert seen == []


def test_iterations_left_follows_the_fall_of_the_residuals():
    run, left = Run("halving", 50, 2.0**-20), []
    for iteration in run:
        run.check(size=2.0**-iteration)
        left.append(run.iterations_left())
    # one iteration tells nothing; then the line through the logarithms is exact, but for "below
    # tol"
    assert left[0] == 49
    assert left[4] == 15
    assert left[-1] == 0


def test_iterations_left_without_progress_is_all_that_may_come():
    run, left = Run("still", 5, 0.5), []
    left += [(run.check(size=1.0), run.iterations_left())[1] for _ in run]
    assert left == [4, 3, 2, 1, 0]
