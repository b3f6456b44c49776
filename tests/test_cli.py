import json

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
    assert "link6  revolute" in capsys.readouterr().out
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("suffix", [".urdf", ".json"])
def test_info_reads_files(suffix, tmp_path, capsys):
    model = jd.robots.gripper()
    text = jd.to_urdf(model) if suffix == ".urdf" else json.dumps(jd.to_dict(model))
    (tmp_path / f"gripper{suffix}").write_text(text)
    assert main(["info", str(tmp_path / f"gripper{suffix}")]) == 0
    assert "M2 (from M1): link1_2, link2_2" in capsys.readouterr().out


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
