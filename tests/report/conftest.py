"""A fit of digits, and Debian's chromium, driven by selenium."""

import json
import os
import shutil

import pytest
from report.browsing import write

from polyspan import GRMSC
from polyspan.datasets import load_digits_views

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",  # it is small in containers
]  # fmt: skip


@pytest.fixture(scope="session")
def digits():
    data = load_digits_views(150, random_state=0)
    model = GRMSC(n_clusters=10, affinity="sparse", random_state=0).fit(data.views)
    return data, model


@pytest.fixture(scope="session")
def digits_page(tmp_path_factory):
    """A real fit of 200 digits."""
    data = load_digits_views(200, random_state=0)
    model = GRMSC(n_clusters=10, affinity="sparse", random_state=0).fit(data.views)
    return write(
        tmp_path_factory.mktemp("digits"), data.views, model, command="polyspan fit a.csv"
    ), model


@pytest.fixture(scope="session")
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
