"""A real browser for the tests of pages."""

import os
import shutil

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--no-sandbox",
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage",
)


@pytest.fixture(scope="session")
def browser():
    """Chromium under playwright; `make browser` installs it."""
    program = next((path for path in map(shutil.which, _NAMES) if path), None)
    if program is None or os.environ.get("BROWSER") == "none":
        pytest.skip("no chromium or chrome here, or BROWSER=none")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=program, args=list(_FLAGS)
        )
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def tab(browser):
    """A page that the tests of a module share, as opening one takes seconds."""
    opened = browser.new_page(viewport={"width": 900, "height": 520})
    opened.set_default_timeout(60_000)
    opened.problems, opened.requests = [], []
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.on(
        "console",
        lambda said: opened.problems.append(said.text) if said.type == "error" else 0,
    )
    opened.on("request", lambda request: opened.requests.append(request.url))
    yield opened
    opened.close()


@pytest.fixture
def page(tab):
    """The page; no test may cause an error in it."""
    tab.problems.clear(), tab.requests.clear()
    yield tab
    assert tab.problems == []
