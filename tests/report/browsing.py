"""Reports in a real browser: what the tests do there and read."""

from datetime import UTC, datetime

from polyspan.report import write_report

DATE = datetime(2026, 1, 2, tzinfo=UTC)


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
    """Pixels of the map that have exactly a color."""
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


def ground(browser):
    return browser.execute_script(
        "return ['body', 'section'].map((s) => "
        "getComputedStyle(document.querySelector(s)).backgroundColor)"
    )


def no_overflow(browser):
    wide = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]"
    )
    assert max(wide[:2]) <= wide[2], wide
