"""The pictures of robots in docs/view.md are those that docs/pictures.py makes."""

import importlib.util
import re
from pathlib import Path

import numpy as np
from PIL import Image

import jaxdyn as jd
from tests.view.test_animation import data_of, floats

TOP = Path(__file__).parent.parent.parent
PAGE = (TOP / "docs" / "view.md").read_text(encoding="utf-8")


def script():
    spec = importlib.util.spec_from_file_location("pictures", TOP / "docs/pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_all_pictures_and_they_are_small():
    pictures = script()
    named = re.findall(r"!\[[^\]]+\]\(images/(\w+)\.jpg\)", PAGE)
    assert named == list(pictures.ROBOTS)
    assert "`make pictures` makes them" in PAGE
    for name in named:
        path = pictures.IMAGES / f"{name}.jpg"
        assert path.stat().st_size < 200_000
        with Image.open(path) as image:
            assert image.size == pictures.SIZE
            assert np.ptp(np.asarray(image.convert("L"))) > 200


def test_a_robot_of_a_picture_swings_about_the_middle_of_its_joint(tmp_path):
    pictures, robot = script(), tmp_path / "r.urdf"
    robot.write_text(jd.to_urdf(jd.robots.chain(2)))
    name = jd.robots.chain(2).joint_names[1]
    pictures.animate(robot, False, {name: (0.3, 0.2, 0.0)}, tmp_path / "a.html")
    (plot, *_) = data_of(tmp_path / "a.html")["plots"]
    values = {line["name"]: floats(line["values"]) for line in plot["lines"]}
    ends = values[name].min(), values[name].max()
    np.testing.assert_allclose(ends, (0.1, 0.5), atol=1e-6)
    assert pictures.robot_file("no_description/urdf/no.urdf") is None
