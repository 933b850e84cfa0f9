"""The report in a real browser: schemes, paper, small screens, long names, many samples."""

import numpy as np
import pytest
from report.browsing import alone, css, ground, inked, no_overflow, point_at, state, write
from sklearn.neighbors import kneighbors_graph

from polyspan import GRMSC, ConcatKMeans, ConcatSpectral
from polyspan.datasets import load_digits_views

# One worker of pytest-xdist runs them all: the browser starts once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark(see, digits_page, dark):
    browser = see(digits_page[0], dark=dark)
    schemes = [["rgb(245, 246, 248)", "rgb(255, 255, 255)"], ["rgb(15, 19, 24)", "rgb(23, 28, 35)"]]
    system, other = schemes[::-1] if dark else schemes
    assert ground(browser) == system
    css(browser, "#theme").click()
    assert ground(browser) == other
    browser.refresh()
    assert ground(browser) == other  # what was chosen stays
    assert css(browser, "#theme").text == ("Dark" if dark else "Light")
    css(browser, "#theme").click()
    assert ground(browser) == system


def test_printing(see, digits_page):
    browser = see(digits_page[0], dark=True)
    found = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(found["data"]) > 20000
    assert css(browser, "#theme").text == "Light"  # still dark on the screen


@pytest.mark.parametrize("width", [320, 390, 800, 1200])
def test_no_sideways_scrolling(see, digits_page, width):
    browser = see(digits_page[0], width=width)
    no_overflow(browser)
    assert browser.execute_script("return innerWidth") == width
    assert css(browser, "#points").size["width"] > 0.5 * min(width, 1000)


def test_hostile_and_very_long_names_on_a_phone(see, tmp_path):
    data = load_digits_views(60, random_state=0)
    model = GRMSC(n_clusters=3, random_state=0).fit(data.views)
    long = "x" * 3000
    ids = [HOSTILE + str(i) for i in range(59)] + [long]
    file = write(
        tmp_path, data.views, model, sample_ids=ids, view_names=[HOSTILE, long, "\u202e\u6f22"],
        title=HOSTILE + long, command=HOSTILE + long, notes=[HOSTILE, long],
        labels=np.array([HOSTILE, long, "c"])[model.labels_],
    )  # fmt: skip
    browser = see(file, width=390)
    no_overflow(browser)
    assert HOSTILE in css(browser, "h1").text
    box = css(browser, "#search")
    box.send_keys(HOSTILE + "7\n")
    assert HOSTILE + "7" in css(browser, "#readout").text
    assert HOSTILE + "7" in css(browser, "#tip").text
    no_overflow(browser)
    box.clear()
    box.send_keys("xxxxx\n")
    assert state(browser)["selected"] == 59
    no_overflow(browser)
    assert css(browser, "#tip").size["height"] < 380


@pytest.mark.parametrize("n_clusters", [1, 3])
@pytest.mark.parametrize("method", [ConcatKMeans, ConcatSpectral])
def test_three_samples(see, tmp_path, method, n_clusters):
    views = [np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])]
    model = method(n_clusters=n_clusters, random_state=0).fit(views)
    browser = see(write(tmp_path, views, model), width=390)
    no_overflow(browser)
    css(browser, "#search").send_keys("digit-002\n")
    assert "digit-002" in css(browser, "#readout").text


def test_100_clusters(see, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(1000) % 100
    X = rng.standard_normal((100, 5))[labels] + 0.1 * rng.standard_normal((1000, 5))
    near = kneighbors_graph(X, 5)
    model = ConcatSpectral(100)
    model.labels_, model.affinity_matrix_ = labels, (near + near.T) / 2
    browser = see(write(tmp_path, [X], model), width=390)
    no_overflow(browser)
    rows = browser.find_elements("css selector", "#legend li")
    assert len(rows) == 100
    browser.execute_script("arguments[0].firstChild.click()", rows[99])
    assert state(browser)["chosen"] == [99]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """20,000 samples with the k-NN graph of their points."""
    rng = np.random.default_rng(0)
    labels = np.arange(20000) % 12
    X = 4 * rng.standard_normal((12, 3))[labels] + rng.standard_normal((20000, 3))
    near = kneighbors_graph(X, 8)
    model = ConcatSpectral(12)
    model.labels_, model.affinity_matrix_ = labels, (near + near.T) / 2
    ids = [f"cell-{i:05d}" for i in range(20000)]
    return write(tmp_path_factory.mktemp("many"), [X], model, sample_ids=ids)


def test_20000_samples_respond(see, many):
    browser = see(many)
    clusters = browser.execute_script("return JSON.parse(data.textContent).clusters")
    assert all(inked(browser, one["color"]) > 50 for one in clusters)
    i = alone(browser)
    point_at(browser, i)
    assert f"cell-{i:05d}" in css(browser, "#tip").text
    css(browser, "#search").send_keys("cell-19999\n")
    assert "Selected: cell-19999" in css(browser, "#readout").text
    before = inked(browser, clusters[0]["color"])
    browser.find_elements("css selector", "#legend .hide")[0].click()
    assert inked(browser, clusters[0]["color"]) < before / 4
    no_overflow(browser)
