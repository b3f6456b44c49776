import json
import math
import re

import pytest

import jaxdyn as jd
from jaxdyn.cli import main


def test_info_shows_the_robot_and_saves_a_picture(tmp_path, capsys):
    picture = tmp_path / "new" / "puma.png"
    code = main(
        [
            "info",
            "puma_560",
            "--degrees",
            *"--q 0 45 180 0 45 0 -o".split(),
            str(picture),
        ]
    )
    assert code == 0
    shown = capsys.readouterr().out
    assert "link6  revolute" in shown
    assert re.search(r"j_link2 +31\.6398\d* +2\.0889", shown)  # holds its weight
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("suffix", [".urdf", ".json"])
def test_info_reads_files(suffix, tmp_path, capsys):
    model = jd.robots.gripper()
    text = jd.to_urdf(model) if suffix == ".urdf" else json.dumps(jd.to_dict(model))
    (tmp_path / f"gripper{suffix}").write_text(text)
    assert main(["info", str(tmp_path / f"gripper{suffix}")]) == 0
    assert "M2 (from M1): link1_2, link2_2" in capsys.readouterr().out


@pytest.fixture
def saved(tmp_path):
    """Saves a chain of joints as a file; its path."""

    def save(*joints):
        builder = jd.ModelBuilder()
        for i, joint in enumerate(joints):
            axis2 = {"axis2": (1, 0, 0)} if joint in ("planar", "universal") else {}
            builder.add_body(f"b{i}", i - 1, joint, **axis2)
        path = tmp_path / "robot.json"
        path.write_text(json.dumps(jd.to_dict(builder.build())))
        return str(path)

    return save


def shown_pose(capsys):
    """The pose that the command has printed."""
    lines = capsys.readouterr().out.splitlines()
    text = next(line for line in lines if line.startswith("pose q = "))
    return json.loads(text.removeprefix("pose q = "))


def test_degrees_are_for_angles_only(saved, capsys):
    robot = saved("prismatic", "revolute", "planar", "spherical", "free")
    q = "90 90 90 90 90 0 0 0 1 90 90 90 0 0 0 1"
    assert main(["info", robot, "--degrees", "--q", *q.split()]) == 0
    want = [float(x) for x in q.split()]
    want[1] = want[4] = round(math.pi / 2, 6)
    assert shown_pose(capsys) == want


@pytest.mark.slow
def test_the_neutral_pose_is_not_taken_for_degrees(saved, capsys):
    assert main(["info", saved("spherical"), "--degrees"]) == 0
    assert shown_pose(capsys) == [0, 0, 0, 1]


@pytest.mark.slow
def test_negative_numbers_may_have_an_exponent(saved, capsys):
    robot = saved("revolute", "revolute", "revolute")
    assert main(["info", robot, "--q", "0", "-1e-3", "-.5E+1"]) == 0
    assert shown_pose(capsys) == [0, -1e-3, -5]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["info", "puma"], "'puma' is not known, expected a file"),
        (["info", "puma_560", "--q", "0"], "--q has 1 numbers, expected 6"),
        (["info", "missing.urdf"], "missing.urdf"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_info_prints_the_report_of_a_file_of_any_ending(tmp_path, capsys):
    text = jd.to_urdf(jd.robots.gripper()).replace("<joint", "<drive/><joint", 1)
    (tmp_path / "gripper.xml").write_text(text)
    assert main(["info", str(tmp_path / "gripper.xml")]) == 0
    assert (
        "robot/drive  robot  same    not read: URDF has no" in capsys.readouterr().out
    )
