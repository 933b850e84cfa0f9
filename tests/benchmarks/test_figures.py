import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib")

from harness.budgets import budgets
from harness.figures import (
    plot_budgets,
    plot_grid,
    plot_method,
    plot_scores,
    save_figures,
)
from harness.summaries import summarize
from polyspan import GRMSC
from polyspan.datasets import make_subspaces
from polyspan.metrics import SCORES

BASE = {
    "protocol": "mine", "dataset": "Planted (60)", "source": {"name": "ngs"}, "method": "GRMSC",
    "paper": "GRMSC", "selection": "tuned", "seed": 0, "status": "ok", "reason": None,
    "converged": True, "seconds": 1.0, **dict.fromkeys(SCORES, 0.5),
}  # fmt: skip


def tuned(lam1, lam2, k, nmi):
    params = {"lam1": lam1, "lam2": lam2, "n_neighbors": k}
    return BASE | {"stage": "tune", "params": params, "key": repr(params), "nmi": nmi}


GRID = [
    tuned(1.0, 1.0, 5, 0.1), tuned(1.0, 10.0, 5, 0.2), tuned(10.0, 1.0, 5, 0.3),
    tuned(10.0, 10.0, 5, 0.4), tuned(1.0, 1.0, 9, 0.9), tuned(10.0, 10.0, 9, 0.8),
]  # fmt: skip
FINAL = BASE | {"stage": "final", "params": {}, "key": "f", "nmi": 0.7}


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_a_grid_shows_the_plane_of_the_best_setting():
    ax = plot_grid(GRID, "Planted (60)")
    assert "n_neighbors=9" in ax.get_title("left")
    assert texts(ax) == [".90", "", "", ".80"]  # lam1 up, lam2 to the right; two were not run
    image = ax.images[0].get_array()
    assert image[0, 0] == 0.9
    assert image[1, 1] == 0.8
    ax = plot_grid(GRID, "Planted (60)", values=(1.0,))
    assert texts(ax) == [".90"]


def test_what_is_no_grid_is_refused():
    with pytest.raises(ValueError, match="no grid of lam1 and lam2 was run for RMSC on Planted"):
        plot_grid(GRID, "Planted (60)", "RMSC")
    with pytest.raises(ValueError, match="nothing to draw"):
        plot_scores(summarize(GRID))


def test_scores_show_ours_and_the_paper():
    figure = plot_scores(
        summarize([FINAL, FINAL | {"selection": "default", "key": "g", "nmi": 0.6}])
    )
    drawn = [float(line.get_xdata()[0]) for line in figure.axes[0].lines if len(line.get_xdata())]
    assert {0.7, 0.6, 0.9547} <= set(drawn)  # the last is the paper's on NGs
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["GRMSC", "GRMSC"]


def test_save_figures(tmp_path):
    names = [path.name for path in save_figures([*GRID, FINAL], tmp_path)]
    drawn = ("nmi", "budgets-planted-60", "grid-planted-60-grmsc")
    assert names == [f"mine-{name}.png" for name in drawn]
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        save_figures(GRID, tmp_path / "none")


def test_the_method_as_a_diagram():
    data = make_subspaces(60, 3, random_state=0)
    model = GRMSC(3, random_state=0).fit(data.views)
    figure = plot_method(data.views, model.labels_, model.representation_, 10, ["a", "b"])
    titles = [ax.get_title("left") for ax in figure.axes]
    assert sum("Lambda" in title for title in titles) == len(data.views) + 1
    assert sum("Upsilon" in title for title in titles) == len(data.views)
    drawn = figure.axes[-1].images[0].get_array()
    assert drawn.shape == (60, 60)
    blocks = np.sort(model.labels_)[:, None] == np.sort(model.labels_)[None, :]
    assert drawn[blocks].mean() > 0.1 + drawn[~blocks].mean()  # sorted by cluster


def test_budgets_are_lines_to_the_best_and_dots_for_what_has_no_grid():
    rows = [*GRID, FINAL, FINAL | {"selection": "default", "key": "g", "nmi": 0.65}]
    ax = plot_budgets(budgets(rows), "Planted (60)")
    dots, line = sorted(ax.lines, key=lambda one: len(one.get_xdata()))
    assert line.get_xdata().tolist() == [1, 2, 3, 4, 5, 6]
    assert line.get_ydata()[[0, -1]] == pytest.approx([2.7 / 6, 0.9])
    assert (dots.get_xdata().tolist(), dots.get_ydata().tolist()) == ([1], [0.65])
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["GRMSC (6)", "GRMSC, default"]
    assert ax.get_xscale() == "log"
    with pytest.raises(ValueError, match="no run was successful on NGs"):
        plot_budgets(budgets(rows), "NGs")
