"""The report in a real browser: tables that search and page, maps of views, every button."""

import numpy as np
import pytest
from report.browsing import css, inked, settle, state, write
from report.test_explained import voted

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    data, consensus, votes, _ = voted(60)
    consensus.labels_by_k_ = {3: consensus.labels_, 2: np.minimum(votes[0], 1)}
    rng = np.random.default_rng(0)
    known = {
        "diet": np.array(["corn", "fish", "<b>oil"])[votes[0]],
        "age": rng.normal(50, 9, 60),
        "days": rng.integers(1, 99, 60),
        "dead": rng.integers(0, 2, 60),
    }
    return write(
        tmp_path_factory.mktemp("taken"), data.views, consensus, known=known,
        survival=("days", "dead"), command="polyspan fit a.csv",
    )  # fmt: skip


def saved(browser):
    settle(browser)
    browser.execute_async_script("setTimeout(arguments[0], 120)")
    return browser.execute_script("return polyspanReport.saved()")


def test_long_tables_search_sort_and_page(see, page):
    browser = see(page)
    holder = css(browser, "[data-long='samples']")
    rows = "[data-long='samples'] tbody tr"
    assert len(browser.find_elements("css selector", rows)) == 25
    told = holder.find_element("css selector", ".pager span")
    assert told.text == "1 to 25 of 60"
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", told)
    holder.find_element("css selector", "[data-page='1']").click()
    assert told.text == "26 to 50 of 60"
    box = css(browser, "#find-samples")
    box.send_keys("digit-01")
    assert told.text == "1 to 10 of 10"
    box.clear()
    box.send_keys("nobody")
    assert told.text == "Nothing found."
    box.clear()
    box.send_keys("digit")
    head = holder.find_elements("css selector", "th button")[2]
    head.click()
    values = [
        float(row.find_elements("css selector", "td")[2].text)
        for row in browser.find_elements("css selector", rows)
    ]
    assert values == sorted(values)
    holder = css(browser, "[data-long='markers']")
    assert "of 51" in holder.find_element("css selector", ".pager span").text


def test_every_button_saves_something(see, page):
    browser = see(page)
    buttons = browser.find_elements("css selector", "[data-save], [data-csv], [data-map]")
    names = set()
    for button in buttons:
        browser.execute_script("arguments[0].click()", button)
        found = saved(browser)
        assert found["size"] > 20, button.get_attribute("outerHTML")
        names.add(found["name"])
        if found["name"].endswith(".svg"):
            assert found["text"].startswith("<svg")
            wrong = browser.execute_script(
                "return new DOMParser().parseFromString(arguments[0], 'image/svg+xml')"
                ".querySelector('parsererror') !== null", found["text"],
            )  # fmt: skip
            assert not wrong
    for name in ("features", "consensus", "silhouette", "flow-1", "survival", "map"):
        assert {f"polyspan-{name}.svg", f"polyspan-{name}.png"} <= names
    assert {"polyspan-samples.csv", "polyspan-markers.csv"} <= names


def test_csv_holds_all_rows_and_quotes(see, page):
    browser = see(page)
    browser.execute_script("document.querySelector('[data-csv=samples]').click()")
    lines = saved(browser)["text"].splitlines()
    assert lines[0] == "Sample,Cluster,Certainty,Second choice"
    assert len(lines) == 61
    assert lines[1].startswith("digit-000,0,0,")


def test_map_is_coloured_by_what_is_known(see, page):
    from selenium.webdriver.support.ui import Select

    browser = see(page)
    key = css(browser, "#paint-key")
    assert not key.is_displayed()
    Select(css(browser, "#paint")).select_by_visible_text("by diet")
    assert key.text.split("\n") == ["<b>oil", "corn", "fish", "unknown"]
    colors = browser.execute_script("return JSON.parse(data.textContent).known[0].colors")
    assert all(inked(browser, color) > 20 for color in colors)
    Select(css(browser, "#paint")).select_by_visible_text("by age")
    assert len(key.text.split("\n")) == 3
    Select(css(browser, "#paint")).select_by_visible_text("by cluster")
    assert not key.is_displayed()


def test_maps_of_the_views_are_linked(see, page):
    browser = see(page)
    count = """
        const c = document.querySelectorAll("#minis canvas")[arguments[0]];
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        let count = 0;
        for (let k = 0; k < d.length; k += 4) if (d[k+3] > 128 && d[k] < 40 && d[k+2] < 60) count++;
        return count"""
    assert len(browser.find_elements("css selector", "#minis canvas")) == 2
    settle(browser)
    before = [browser.execute_script(count, k) for k in range(2)]
    css(browser, "#over").send_keys("\ue014")  # the next sample
    settle(browser)
    after = [browser.execute_script(count, k) for k in range(2)]
    assert all(b > a + 10 for a, b in zip(before, after, strict=True))  # a ring in both
    assert state(browser)["selected"] == 0


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_is_wider_than_the_page(see, page, width):
    browser = see(page, width)
    wide = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
    overlong = browser.execute_script(
        "return [...document.querySelectorAll('svg.chart')].filter((s) => "
        "!s.closest('.drawn') && s.getBoundingClientRect().right > innerWidth).length"
    )
    assert overlong == 0
