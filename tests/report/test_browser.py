"""The report in a real browser: pointing, choosing, searching, sorting."""

import time

import numpy as np
import pytest
from report.browsing import alone, css, inked, point_at, settle, state

# One worker of pytest-xdist runs them all: the browser starts once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_pointing_at_a_sample_names_it(see, digits_page):
    file, model = digits_page
    browser = see(file)
    i = alone(browser)
    assert not css(browser, "#tip").is_displayed()
    point_at(browser, i)
    tip = css(browser, "#tip").text
    assert f"digit-{i:03d}" in tip
    assert f"cluster {model.labels_[i]}, certainty " in tip
    assert state(browser)["hovered"] == i
    point_at(browser, i, click=True)
    assert f"Selected: digit-{i:03d}: cluster {model.labels_[i]}" in css(browser, "#readout").text


def test_legend_highlights_and_hides(see, digits_page):
    browser = see(digits_page[0])
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


def test_hidden_samples_do_not_answer(see, digits_page):
    file, model = digits_page
    browser = see(file)
    i = alone(browser)
    rows = browser.find_elements("css selector", "#legend li")
    rows[model.labels_[i]].find_elements("css selector", "button")[1].click()
    settle(browser)
    point_at(browser, i)
    assert state(browser)["hovered"] != i


def test_search_finds_a_sample(see, digits_page):
    from selenium.webdriver import Keys

    browser = see(digits_page[0])
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
    assert css(browser, "#hits").text == "No sample id contains this."
    box.send_keys(Keys.ESCAPE)
    assert not css(browser, "#hits").is_displayed()


def test_a_click_on_a_doubtful_sample_shows_it(see, digits_page):
    browser = see(digits_page[0])
    button = css(browser, "button[data-sample]")
    i = int(button.get_attribute("data-sample"))
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    assert state(browser)["selected"] == i
    assert f"digit-{i:03d}" in css(browser, "#readout").text


def test_keyboard_alone(see, digits_page):
    from selenium.webdriver import Keys

    browser = see(digits_page[0])
    css(browser, "#over").send_keys(Keys.ARROW_RIGHT)
    assert state(browser)["selected"] == 0
    css(browser, "#over").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    assert "Selected: digit-001" in css(browser, "#readout").text
    css(browser, "#over").send_keys("+")
    assert state(browser)["zoom"] > 1
    css(browser, "#over").send_keys(Keys.ESCAPE)
    assert css(browser, "#readout").text == "No sample selected."
    unreachable = browser.execute_script(
        "return [...document.querySelectorAll('button, a, input, select')]"
        ".filter((e) => e.tabIndex < 0 || !(e.textContent + e.ariaLabel + e.id).trim()).length"
    )
    assert unreachable == 0


def test_zoom_drag_and_axes(see, digits_page):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import Select

    browser = see(digits_page[0])
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


def test_affinity_tells_what_is_pointed_at(see, digits_page):
    from selenium.webdriver import ActionChains

    browser = see(digits_page[0])
    picture = css(browser, "#matrix image")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", picture)
    corner = -(picture.size["width"] // 2) + 4
    move = ActionChains(browser, duration=20)
    move.move_to_element_with_offset(picture, corner, corner).perform()
    assert css(browser, "#matrix-out").text.startswith("Inside cluster 0: mean affinity ")
    move = ActionChains(browser, duration=20)
    move.move_to_element_with_offset(picture, -corner, corner).perform()
    assert css(browser, "#matrix-out").text.startswith("Between clusters 0 and 9: mean affinity ")


def test_tables_sort_and_the_command_can_be_copied(see, digits_page):
    file, model = digits_page
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
