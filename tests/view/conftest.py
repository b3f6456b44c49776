"""A real browser for the tests of pages."""

import os
import shutil
import subprocess

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--no-sandbox",
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage",
)


def find_chromium():
    """The program, installed by apt where it is missing and we may."""
    found = next((path for path in map(shutil.which, _NAMES) if path), None)
    if found or not (shutil.which("apt-get") and os.geteuid() == 0):
        return found
    for command in (
        "apt-get update -qq",
        "apt-get install -qq -y --no-install-recommends chromium",
    ):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(
            command.split(), env=environment, capture_output=True, timeout=600
        )
    return shutil.which("chromium")


@pytest.fixture(scope="session")
def browser():
    """Chromium under playwright; skipped where there is none, but never in CI."""
    program = find_chromium()
    if program is None:
        reason = "no chromium or chrome here, and apt-get cannot install one"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
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
