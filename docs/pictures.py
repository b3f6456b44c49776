"""The pictures of README.md and docs/view.md, from pages in a browser.

Run from the top folder: `make pictures`, or `python docs/pictures.py`. It needs
chromium or chrome, and for the robots with meshes the environment of
`make test-robots`, which has their files.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from playwright.sync_api import sync_playwright

import jaxdyn as jd
from jaxdyn.cli import main
from jaxdyn.view import save_animation

TOP = Path(__file__).parent.parent
IMAGES = TOP / "docs" / "images"
DATA = TOP / ".venv-robots/lib"  # of make test-robots
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
]
SHARE = 0.55  # of the motion
SIZE = (1200, 640)  # of the pictures of robots
# the files of robots, whether they float, of some joints the middle, swing and phase
LEGS = {"FL": 0.0, "RR": 0.0, "FR": np.pi, "RL": np.pi}
ROBOTS = {
    "panda": (
        "panda_description/urdf/panda.urdf",
        False,
        {
            "panda_joint1": (0.2, 0.6, 0.0),
            "panda_joint2": (-0.5, 0.3, 0.5),
            "panda_joint4": (-2.1, 0.4, 1.0),
            "panda_joint6": (1.7, 0.3, 0.0),
            "panda_joint7": (0.8, 0.5, 0.7),
            "panda_finger_joint1": (0.03, 0.01, 0.0),  # the other one follows
        },
    ),
    "go2": (
        "go2_description/urdf/go2.urdf",
        True,
        {f"{leg}_thigh_joint": (0.8, 0.3, at) for leg, at in LEGS.items()}
        | {f"{leg}_calf_joint": (-1.6, 0.35, at + 1.2) for leg, at in LEGS.items()},
    ),
    "g1": (
        "g1_description/urdf/g1_29dof_rev_1_0.urdf",
        True,
        {
            f"{side}_{joint}": (middle, swing, at + phase)
            for side, at in (("left", 0.0), ("right", np.pi))
            for joint, middle, swing, phase in (
                ("hip_pitch_joint", -0.2, 0.5, 0.0),
                ("knee_joint", 0.5, 0.4, -1.2),
                ("ankle_pitch_joint", -0.2, 0.2, 0.0),
                ("shoulder_pitch_joint", 0.1, 0.6, np.pi),
                ("elbow_joint", 0.4, 0.3, np.pi),
            )
        },
    ),
}


def photograph(page: Path, picture: Path, size: tuple[int, int] = (1400, 800)) -> None:
    """Save what a browser shows of an animated page."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit(f"none of {', '.join(BROWSERS)} is here: install one of them.")
    quality = 85 if picture.suffix == ".jpg" else None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        tab = browser.new_page(viewport={"width": size[0], "height": size[1]})
        tab.set_default_timeout(120_000)
        tab.goto(page.as_uri())
        tab.wait_for_function("window.jaxdyn && jaxdyn.ready && jaxdyn.drawn > 0")
        drawn = tab.evaluate("jaxdyn.pause(), jaxdyn.drawn")
        tab.evaluate(f"jaxdyn.seek({SHARE} * jaxdyn.duration)")
        tab.wait_for_function(f"jaxdyn.drawn > {drawn}")
        tab.wait_for_timeout(1000)
        tab.screenshot(path=picture, quality=quality)
        browser.close()


def animate(
    file: Path, floats: bool, joints: dict[str, tuple[float, ...]], page: Path
) -> None:
    """Save a page of a robot whose joints swing for two seconds."""
    robot = jd.load(file, floating_base=floats)
    ts = np.linspace(0.0, 2.0, 121)
    ways = np.zeros((len(ts), robot.nv))
    for name, (middle, swing, phase) in joints.items():
        at = robot.v_slice(robot.joint_names.index(name))
        ways[:, at] = (middle + swing * np.sin(np.pi * ts + phase))[:, None]
    start, rows = jd.neutral(robot), jnp.asarray(ways, robot.dtype)
    q = jax.vmap(jd.integrate, (None, None, 0))(robot, start, rows)
    save_animation(robot, ts, q, page)


def robot_file(name: str) -> Path | None:
    """A file of the package example-robot-data, None if it is not installed."""
    found = DATA.glob(f"*/site-packages/cmeel.prefix/share/*/robots/{name}")
    return next(found, None)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "puma"
        config = TOP / "configs" / "puma.toml"
        code = main(["simulate", str(config), "-o", str(results)])
        if code == 0:
            photograph(results / "animation.html", IMAGES / "animation.png")
        for name, (file, *motion) in ROBOTS.items():
            path = robot_file(file)
            if path is None:
                sys.exit(f"{file} is not in {DATA}: run make test-robots first.")
            animate(path, *motion, Path(folder) / f"{name}.html")
            photograph(Path(folder) / f"{name}.html", IMAGES / f"{name}.jpg", SIZE)
    sys.exit(code)
