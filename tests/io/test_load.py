"""`jd.load`: the reader is found by the content."""

import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import jaxdyn as jd

MODEL = jd.robots.gripper()
URDF = jd.to_urdf(MODEL)
JSON = json.dumps(jd.to_dict(MODEL))
MJCF = """<?xml version="1.0"?><!-- <robot> --><mujoco model="m"><worldbody>
<body name="b"><joint name="j"/><geom size="0.1"/></body></worldbody></mujoco>"""
TEXTS = {"URDF": URDF, "MJCF": MJCF, "JSON": JSON}
READERS = {
    "URDF": jd.load_urdf,
    "MJCF": jd.load_mjcf,
    "JSON": lambda text: jd.from_dict(json.loads(text)),
}
each = pytest.mark.parametrize("kind", TEXTS)


def assert_same(a, b):
    assert (a.names, a.joint_names) == (b.names, b.joint_names)
    jax.tree.map(np.testing.assert_array_equal, a, b)


@each
def test_content_decides_for_paths_and_texts(kind, tmp_path):
    want = READERS[kind](TEXTS[kind])
    names = ["robot", "robot.txt", "robot.xml", "robot.json", "{robot}.urdf"]
    for name in names if kind != "MJCF" else ["robot.xml", "{robot}.xml"]:  # MuJoCo's
        path = tmp_path / name
        path.write_text(TEXTS[kind])
        assert_same(jd.load(path), want)
        assert_same(jd.load(str(path)), want)
    assert_same(jd.load(TEXTS[kind]), want)
    assert_same(jd.load(f"\ufeff\n {TEXTS[kind]}"), want)


def test_encodings_with_a_mark_are_read(tmp_path):
    path = tmp_path / "robot"
    for encoding in ("utf-8-sig", "utf-16"):
        path.write_text(URDF, encoding=encoding)
        assert_same(jd.load(path), jd.load_urdf(URDF))


def test_modules_of_robot_descriptions_are_sources(tmp_path):
    urdf, mjcf = tmp_path / "a.urdf", tmp_path / "a.xml"
    urdf.write_text(URDF)
    mjcf.write_text(MJCF)
    both = SimpleNamespace(URDF_PATH=str(urdf), MJCF_PATH=str(mjcf))
    assert_same(jd.load(both), jd.load_urdf(URDF))
    assert_same(jd.load(SimpleNamespace(MJCF_PATH=str(mjcf))), jd.load_mjcf(MJCF))


def test_options_are_those_of_the_reader():
    model = jd.load(URDF, gravity=(0, 0, 0), dtype=np.float32)
    assert (model.dtype, model.gravity.any()) == (np.float32, False)
    for text, reader in ((MJCF, "load_mjcf"), (JSON, "from_dict")):
        said = f"{reader} has no option 'floating_base', 'x', expected some of: .*dtype"
        with pytest.raises(ValueError, match=said):
            jd.load(text, floating_base=True, x=1)


@pytest.mark.parametrize(
    "content, found",
    [
        ("<sdf/>", "'<sdf'"),
        ("<?xml version='1.0'?><!-- <robot> --> <html>", "'<html'"),
        ("solid {a}", "'solid {a}'"),
        ("solid <robot/>", "'solid <robot/>'"),
        ("[1, 2]", r"'\[1, 2\]'"),
        ("", "nothing"),
        ("\0\xff", "'\\\\x00"),
    ],
)
def test_other_content_is_reported(content, found, tmp_path):
    path = tmp_path / "file.urdf"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"file.urdf: it starts with {found}.*<mujoco"):
        jd.load(path)


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"bodies": [', "the text, line 1: Expecting value: expected a robot in JSON"),
        ('{"a":' * 100_000, "the text: .*expected a robot in JSON"),
        ('{"a": 1}', "'a'"),
        ("<robot", "not well-formed|unclosed|no element"),
    ],
)
def test_broken_content_is_reported(text, message):
    with pytest.raises(ValueError, match=message):
        jd.load(text)


@pytest.mark.parametrize("source", ["", None, 5, b"<robot/>", SimpleNamespace()])
def test_other_sources_are_reported(source, without_type_checker):
    with pytest.raises(
        ValueError, match="the source is .*, expected a path, or a text"
    ):
        jd.load(source)
    with pytest.raises(ValueError, match="absent: cannot be read"):
        jd.load("absent")
