"""README's first picture: the page of `make run`, halfway through the motion.

Run from the top folder: `python docs/pictures.py`. It needs chromium or chrome.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from jaxdyn.cli import main

TOP = Path(__file__).parent.parent
PICTURE = TOP / "docs" / "images" / "animation.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
]
SHARE = 0.55  # of the motion


def photograph(page: Path, picture: Path) -> None:
    """Save what a browser shows of an animated page."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit(f"none of {', '.join(BROWSERS)} is here: install one of them.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        tab = browser.new_page(viewport={"width": 1400, "height": 800})
        tab.set_default_timeout(120_000)
        tab.goto(page.as_uri())
        tab.wait_for_function("window.jaxdyn && jaxdyn.ready && jaxdyn.drawn > 0")
        drawn = tab.evaluate("jaxdyn.pause(), jaxdyn.drawn")
        tab.evaluate(f"jaxdyn.seek({SHARE} * jaxdyn.duration)")
        tab.wait_for_function(f"jaxdyn.drawn > {drawn}")
        tab.wait_for_timeout(1000)
        tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "puma"
        code = main(
            ["simulate", str(TOP / "configs" / "puma.toml"), "-o", str(results)]
        )
        if code == 0:
            photograph(results / "animation.html", PICTURE)
    sys.exit(code)
