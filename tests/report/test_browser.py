"""The report in a real browser: Debian's chromium, driven by selenium."""

import json
import os
import shutil
import time
from datetime import UTC, datetime

import numpy as np
import pytest
from sklearn.neighbors import kneighbors_graph

from polyspan import GRMSC, ConcatKMeans, ConcatSpectral
from polyspan.datasets import load_digits_views
from polyspan.report import write_report

# One worker of pytest-xdist runs them all: the browser starts once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
DATE = datetime(2026, 1, 2, tzinfo=UTC)
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",  # it is small in containers
]  # fmt: skip
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        webdriver = None
    if not (chromium and driver and webdriver):
        reason = "chromium, chromedriver or selenium is missing: install chromium-driver"
        if os.environ.get("POLYSPAN_REQUIRE_CHROMIUM"):
            pytest.fail(reason)
        pytest.skip(reason)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    browser.set_page_load_timeout(60)
    browser.set_script_timeout(30)
    yield browser
    browser.quit()


@pytest.fixture
def see(browser):
    """Open a file at a width and in a scheme; afterwards nothing was fetched, nothing failed."""
    browser.get_log("browser"), browser.get_log("performance")

    def open_file(path, width=1200, dark=False):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        likes = {"color-scheme": "dark" if dark else "light", "reduced-motion": "reduce"}
        features = [{"name": f"prefers-{name}", "value": value} for name, value in likes.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(path.as_uri())
        return browser

    yield open_file
    browser.execute_script("localStorage.clear()")  # the scheme that was chosen
    told = [entry["message"] for entry in browser.get_log("browser")]
    # Only the tests read pixels back, and Chromium remarks on it.
    assert [text for text in told if "willReadFrequently" not in text] == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
        # Chromium's own first page may still be loading its parts.
        and not event["params"]["documentURL"].startswith("chrome")
    ]
    assert any(address.startswith("file:") for address in asked)  # the log works
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
    assert browser.execute_script("return window.hacked") is None


def write(folder, views, model, labels=None, name="report.html", **more):
    given = {
        "views": views,
        "view_names": [f"view {k}" for k in range(len(views))],
        "sample_ids": [f"digit-{i:03d}" for i in range(len(model.labels_))],
        "estimator": model,
        "labels": model.labels_ if labels is None else labels,
        "date": DATE,
    }
    return write_report(folder / name, **(given | more))


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A real fit of 200 digits."""
    data = load_digits_views(200, random_state=0)
    model = GRMSC(n_clusters=10, affinity="sparse", random_state=0).fit(data.views)
    return write(
        tmp_path_factory.mktemp("digits"), data.views, model, command="polyspan fit a.csv"
    ), model


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


def css(browser, selector):
    return browser.find_element("css selector", selector)


def state(browser):
    return browser.execute_script("return polyspanReport.state()")


def settle(browser):
    """Wait until what was asked for is drawn."""
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )


def alone(browser):
    """A sample that no other lies near, so that pointing at it can mean only one."""
    return browser.execute_script("""
        const n = JSON.parse(data.textContent).n;
        const at = Array.from({length: n}, (_, i) => polyspanReport.where(i));
        let best = 0, far = 0;
        for (let i = 0; i < Math.min(n, 2000); i++) {
            let gap = 1e9;
            for (let j = 0; j < n; j++) {
                if (j !== i) gap = Math.min(gap, Math.hypot(at[i][0]-at[j][0], at[i][1]-at[j][1]));
            }
            if (gap > far) { far = gap; best = i; }
        }
        return best""")


def point_at(browser, i, click=False):
    from selenium.webdriver import ActionChains

    canvas = css(browser, "#over")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    x, y = browser.execute_script("return polyspanReport.where(arguments[0])", i)
    size = canvas.size
    moves = ActionChains(browser, duration=20).move_to_element_with_offset(
        canvas, round(x - size["width"] / 2), round(y - size["height"] / 2)
    )
    (moves.click() if click else moves).perform()
    settle(browser)


def inked(browser, color):
    """Pixels of the map that have exactly a colour."""
    settle(browser)
    return browser.execute_script("""
        const c = document.getElementById("points");
        const rgb = [1, 3, 5].map((k) => parseInt(arguments[0].slice(k, k + 2), 16));
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        let count = 0;
        for (let k = 0; k < d.length; k += 4) {
            if (d[k+3] > 128 && rgb.every((v, j) => Math.abs(d[k+j] - v) < 4)) count++;
        }
        return count""", color)  # fmt: skip


def test_pointing_at_a_sample_names_it(see, digits):
    file, model = digits
    browser = see(file)
    i = alone(browser)
    assert not css(browser, "#tip").is_displayed()
    point_at(browser, i)
    tip = css(browser, "#tip").text
    assert f"digit-{i:03d}" in tip
    assert f"cluster {model.labels_[i]}, certainty " in tip
    assert state(browser)["hovered"] == i
    point_at(browser, i, click=True)
    assert f"Chosen: digit-{i:03d}: cluster {model.labels_[i]}" in css(browser, "#readout").text


def test_legend_highlights_and_hides(see, digits):
    browser = see(digits[0])
    colors = browser.execute_script("return JSON.parse(data.textContent).clusters")
    first, second = colors[0]["color"], colors[1]["color"]
    before = inked(browser, first), inked(browser, second)
    assert min(before) > 20
    rows = browser.find_elements("css selector", "#legend li")
    assert len(rows) == 10
    pick, hide = rows[0].find_elements("css selector", "button")
    hide.click()
    assert inked(browser, first) < before[0] / 4  # nothing but chance is left of it
    assert inked(browser, second) >= before[1]
    assert state(browser)["hidden"] == [0]
    assert hide.text == "show"
    hide.click()
    assert inked(browser, first) == before[0]
    pick.click()
    assert pick.get_attribute("aria-pressed") == "true"
    assert inked(browser, second) < before[1] / 4  # all others fade
    assert inked(browser, first) > before[0] / 2
    css(browser, "#all").click()
    assert (inked(browser, first), inked(browser, second)) == before


def test_hidden_samples_do_not_answer(see, digits):
    file, model = digits
    browser = see(file)
    i = alone(browser)
    rows = browser.find_elements("css selector", "#legend li")
    rows[model.labels_[i]].find_elements("css selector", "button")[1].click()
    settle(browser)
    point_at(browser, i)
    assert state(browser)["hovered"] != i


def test_search_finds_a_sample(see, digits):
    from selenium.webdriver import Keys

    browser = see(digits[0])
    box = css(browser, "#search")
    box.send_keys("T-01")
    found = [hit.text for hit in browser.find_elements("css selector", "#hits li")]
    assert found == [f"digit-01{k}" for k in range(8)]
    box.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert state(browser)["selected"] == 11
    assert "digit-011" in css(browser, "#readout").text
    assert not css(browser, "#hits").is_displayed()
    box.clear()
    box.send_keys("nobody")
    assert css(browser, "#hits").text == "No sample has this in its id."
    box.send_keys(Keys.ESCAPE)
    assert not css(browser, "#hits").is_displayed()


def test_a_click_on_a_doubtful_sample_shows_it(see, digits):
    browser = see(digits[0])
    button = css(browser, "button[data-sample]")
    i = int(button.get_attribute("data-sample"))
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    assert state(browser)["selected"] == i
    assert f"digit-{i:03d}" in css(browser, "#readout").text


def test_keyboard_alone(see, digits):
    from selenium.webdriver import Keys

    browser = see(digits[0])
    css(browser, "#over").send_keys(Keys.ARROW_RIGHT)
    assert state(browser)["selected"] == 0
    css(browser, "#over").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert "Chosen: digit-001" in css(browser, "#readout").text
    css(browser, "#over").send_keys("+")
    assert state(browser)["zoom"] > 1
    css(browser, "#over").send_keys(Keys.ESCAPE)
    assert css(browser, "#readout").text == "No sample chosen."
    unreachable = browser.execute_script(
        "return [...document.querySelectorAll('button, a, input, select')]"
        ".filter((e) => e.tabIndex < 0 || !(e.textContent + e.ariaLabel + e.id).trim()).length"
    )
    assert unreachable == 0


def test_zoom_drag_and_axes(see, digits):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import Select

    browser = see(digits[0])
    whole = browser.execute_script("return polyspanReport.where(0)")
    css(browser, "#closer").click()
    settle(browser)
    closer = browser.execute_script("return polyspanReport.where(0)")
    assert closer != whole
    canvas = css(browser, "#over")
    ActionChains(browser, duration=20).click_and_hold(canvas).move_by_offset(40, 0).perform()
    settle(browser)
    ActionChains(browser).release().perform()
    moved = browser.execute_script("return polyspanReport.where(0)")
    assert moved[0] - closer[0] == pytest.approx(40, abs=4)  # the edge of the plot does not move
    assert state(browser)["selected"] == -1  # dragging is not choosing
    css(browser, "#whole").click()
    settle(browser)
    assert browser.execute_script("return polyspanReport.where(0)") == whole
    Select(css(browser, "#across")).select_by_value("2")
    Select(css(browser, "#paint")).select_by_value("certainty")
    settle(browser)
    assert browser.execute_script("return polyspanReport.where(0)")[0] != whole[0]
    assert css(browser, "#ramp").is_displayed()


def test_affinity_tells_what_is_pointed_at(see, digits):
    from selenium.webdriver import ActionChains

    browser = see(digits[0])
    picture = css(browser, "#matrix")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", picture)
    corner = -(picture.size["width"] // 2) + 4
    move = ActionChains(browser, duration=20)
    move.move_to_element_with_offset(picture, corner, corner).perform()
    assert css(browser, "#matrix-out").text.startswith("Inside cluster 0: mean affinity ")
    move = ActionChains(browser, duration=20)
    move.move_to_element_with_offset(picture, -corner, corner).perform()
    assert css(browser, "#matrix-out").text.startswith("Between clusters 0 and 9: mean affinity ")


def test_tables_sort_and_the_command_can_be_copied(see, digits):
    file, model = digits
    browser = see(file)
    sizes = np.bincount(model.labels_)
    head = browser.find_elements("css selector", "#clusters th button")[1]
    for order, wanted in (("ascending", np.sort(sizes)), ("descending", np.sort(sizes)[::-1])):
        browser.execute_script("arguments[0].click()", head)
        found = browser.execute_script(
            "return [...document.querySelectorAll('#clusters tbody tr')]"
            ".map((row) => Number(row.cells[1].dataset.v))"
        )
        assert found == wanted.tolist()
        assert head.find_element("xpath", "..").get_attribute("aria-sort") == order
    button = css(browser, "[data-copy=code-command]")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    time.sleep(0.2)
    assert button.text in ("Copied", "Selected: press Ctrl+C")


def ground(browser):
    return browser.execute_script(
        "return ['body', 'section'].map((s) => "
        "getComputedStyle(document.querySelector(s)).backgroundColor)"
    )


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark(see, digits, dark):
    browser = see(digits[0], dark=dark)
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


def test_printing(see, digits):
    browser = see(digits[0], dark=True)
    found = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(found["data"]) > 20000
    assert css(browser, "#theme").text == "Light"  # still dark on the screen


def no_overflow(browser):
    wide = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]"
    )
    assert max(wide[:2]) <= wide[2], wide


@pytest.mark.parametrize("width", [320, 390, 800, 1200])
def test_no_sideways_scrolling(see, digits, width):
    browser = see(digits[0], width=width)
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


def test_20000_samples_respond(see, many):
    browser = see(many)
    clusters = browser.execute_script("return JSON.parse(data.textContent).clusters")
    assert all(inked(browser, one["color"]) > 50 for one in clusters)
    i = alone(browser)
    point_at(browser, i)
    assert f"cell-{i:05d}" in css(browser, "#tip").text
    css(browser, "#search").send_keys("cell-19999\n")
    assert "Chosen: cell-19999" in css(browser, "#readout").text
    before = inked(browser, clusters[0]["color"])
    browser.find_elements("css selector", "#legend .hide")[0].click()
    assert inked(browser, clusters[0]["color"]) < before / 4
    no_overflow(browser)
