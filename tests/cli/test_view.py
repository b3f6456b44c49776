import json
import re

import pytest

import jaxdyn as jd
from jaxdyn.cli import main

ROBOT = """<robot name="r"><link name="base"/><link name="arm"><inertial>
  <mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><geometry><box size="1 1 1"/></geometry></visual></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/>{}</joint>
</robot>"""
MJCF = """<mujoco><worldbody><body><joint/><geom size="0.1"/></body></worldbody>
</mujoco>"""


def test_any_robot_file_can_be_viewed(tmp_path, monkeypatch):
    served = []
    monkeypatch.setattr("jaxdyn.view.serve", lambda *x, **_: served.append(x))
    texts = {"a.urdf": ROBOT.format(""), "a.xml": MJCF, "robot.txt": ROBOT.format("")}
    texts["a.json"] = json.dumps(jd.to_dict(jd.robots.chain(2)))
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        assert main(["view", str(tmp_path / name)]) == 0
    assert [len(x) for x in served] == [1] * 4  # a model, no motion
    assert [len(x[0].visuals) for x in served] == [1, 1, 1, 0]


def test_a_page_of_a_robot_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.urdf").write_text(ROBOT.format(""))
    assert main(["view", "a.urdf", "--page"]) == 0
    assert "page saved in a.html" in capsys.readouterr().out
    assert '"look":"visual"' in (tmp_path / "a.html").read_text()


@pytest.mark.filterwarnings("always")
def test_errors_are_about_the_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("jaxdyn.view.serve", lambda *_, **__: None)  # never waits
    path = tmp_path / "a.urdf"
    problems = {
        "<robot name='x'>": "a.urdf, line 1: .*well-formed XML",
        "<sdf/>": "a.urdf: it starts with '<sdf', expected <robot>",
        ROBOT.format('<mimic joint="j"/>'): "'j': <mimic joint='j'> needs two.*skip=",
    }
    for text, message in problems.items():
        path.write_text(text)
        assert main(["view", str(path), "--no-browser"]) == 2
        assert re.search(message, capsys.readouterr().err)
    assert main(["view", str(path), "--page", "-o", str(tmp_path / "p.html")]) == 2
    given = ["--skip", "joint/mimic", "--page", "-o", str(tmp_path / "p.html")]
    assert main(["view", str(path), *given]) == 0
    assert "left out: the joint moves on its own" in capsys.readouterr().err
