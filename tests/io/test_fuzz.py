"""Damaged robot files: every reader returns a model or raises a `ValueError`."""

import copy
import json
import time
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import every_joint

DATA = Path(__file__).parents[1] / "data" / "mjcf_cases.json"
SECONDS = 5  # of the processor, for one file; all that were tried take less than one
WORDS = (
    *("", "0", "-1", "1", "2.5", "1e308", "-1e308", "1e-320", "nan", "inf", "-inf"),
    *(
        "1 2",
        "0 0 0",
        "1 2 3 4",
        "abc",
        "true",
        "1,5",
        "0x10",
        "é",
        "\t",
        "a/b",
        "${x}",
    ),
)
VALUES = (
    *(None, True, 0, -1, 1, 7, 0.5, 1e308, 1e-320, np.inf, -np.inf, np.nan, 10**400),
    *(
        "",
        "a",
        "revolute",
        [],
        [[]],
        [1],
        [1, 2, 3],
        {},
        {"a": 1},
        [None],
        [[1], [2, 3]],
    ),
)
FACTORS = (-1.0, 0.0, 0.9, 2.0, 1e-3, 1e3, 1e-200, 1e200)

URDF = """<?xml version="1.0"?>
<robot name="r">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base"/>
  <link name="a"><visual><geometry><box size="1 1 1"/></geometry></visual>
    <inertial><origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/><mass value="2"/>
      <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.2" iyz="0" izz="0.25"/></inertial>
  </link>
  <link name="b"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="tool"/>
  <joint name="j" type="revolute"><parent link="base"/><child link="a"/>
    <origin xyz="0 0 1" rpy="0 1.57 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="3"/>
    <dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="k" type="prismatic"><parent link="a"/><child link="b"/>
    <axis xyz="1 0 0"/><limit effort="5" velocity="1"/></joint>
  <joint name="f" type="fixed"><parent link="b"/><child link="tool"/></joint>
  <transmission name="t"><type>transmission_interface/SimpleTransmission</type>
    <joint name="j"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
    <actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator>
  </transmission>
  <gazebo reference="a"><turnGravityOff>false</turnGravityOff></gazebo>
</robot>"""
MJCF = """<mujoco model="m">
  <compiler angle="radian" autolimits="true"/>
  <option gravity="0 0 -9.8" timestep="0.001"><flag contact="disable"/></option>
  <default><joint damping="0.1" armature="0.01"/><geom density="500"/></default>
  <worldbody>
    <site name="s" pos="1 0 0"/>
    <body name="a" pos="0 0 1" gravcomp="0.5">
      <joint name="j" axis="0 1 0" range="-1 1" stiffness="2" springref="0.1"/>
      <joint name="k" type="slide" axis="1 0 0" frictionloss="0.1"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/>
      <body name="b" pos="0.3 0 0" quat="1 1 0 0"><joint name="l" type="ball"/>
        <inertial pos="0 0 0.1" mass="1" fullinertia="0.1 0.2 0.25 0.01 0 0"/>
        <site name="tip" pos="0 0 0.3"/>
        <body name="c"><geom size="0.05" mass="0.1"/></body>
      </body>
    </body>
    <body name="f" pos="0 1 0"><freejoint name="free"/><geom size="0.1"/></body>
  </worldbody>
  <tendon><fixed name="t"><joint joint="j" coef="2"/><joint joint="k" coef="1"/></fixed>
  </tendon>
  <equality><connect name="e" site1="s" site2="tip"/>
    <weld name="w" body1="f" body2="c"/></equality>
  <actuator><motor name="m" joint="j" gear="10" ctrlrange="-1 1"/>
    <position name="p" joint="k" kp="30"/><general name="g" tendon="t"/></actuator>
</mujoco>"""


def seeds():
    """Whole robot files of each language."""
    spring = jd.SpringDamper(0, (0.1, 0, 0), None, (0, 0.7, 0), 2.2, 0.1, 0.3)
    tree = every_joint(0).with_force(spring)
    tree = tree.with_loop(0, (0, 0, 0), 1, (1, 0, 0), "revolute")
    mujoco_model = jd.load_mjcf(MJCF)
    cases = json.loads(DATA.read_text())["cases"]
    return {
        "urdf": [URDF, jd.to_urdf(jd.robots.gripper())],
        "mjcf": [
            MJCF,
            jd.to_mjcf(jd.robots.gripper()),
            *(x["mjcf"] for x in cases[:3]),
        ],
        "json": [json.dumps(jd.to_dict(x)) for x in (tree, mujoco_model)],
    }


def pick(rng, those):
    return those[int(rng.integers(len(those)))]


def damaged_text(rng, text):
    """A text that ends early, lacks a piece, or has odd characters in it."""
    at, to = sorted(rng.integers(len(text), size=2))
    ways = (
        lambda: text[:at],
        lambda: text[:at] + text[min(to, at + 40) :],
        lambda: text[:at] + chr(int(rng.integers(1, 0x250))) + text[at + 1 :],
        lambda: text[:at] + text[at : at + 30] * 2 + text[at + 30 :],
        lambda: text[:at] + pick(rng, "<>&\"'/\0\ufeff{}[],:") + text[at:],
    )
    return pick(rng, ways)()


def damaged_xml(rng, text):
    """A text with other attributes, or with elements that are gone, twice or moved."""
    root = ET.fromstring(text)
    for _ in range(int(rng.integers(1, 4))):
        elements = list(root.iter())
        parents = [x for x in elements if len(x)]
        if not parents:
            break
        element, parent = pick(rng, elements), pick(rng, parents)
        child = pick(rng, list(parent))
        key = pick(rng, sorted(element.attrib) or ["name"])
        way = int(rng.integers(7))
        if way <= 2:
            others = [x for y in elements for x in y.attrib.values()]
            element.set(key, pick(rng, [*WORDS, *others]))
        elif way == 3:
            element.attrib.pop(key, None)
        elif way == 4:
            parent.remove(child)
        elif way == 5:
            parent.append(copy.deepcopy(child))
        else:
            element.append(copy.deepcopy(child))
    return ET.tostring(root, encoding="unicode")


def damaged_json(rng, text):
    """A text with other values, or with entries that are gone, twice or moved."""
    data = json.loads(text)
    for _ in range(int(rng.integers(1, 3))):
        places = [(box, key) for box in _boxes(data) for key in _keys(box)]
        if not places:
            break
        box, key = pick(rng, places)
        other, place = pick(rng, places)
        way = int(rng.integers(6))
        if way <= 1 and isinstance(box[key], float):
            box[key] *= pick(rng, FACTORS)
        elif way <= 2:
            box[key] = pick(rng, VALUES)
        elif way == 3:
            del box[key]
        elif way == 4:
            box[key] = copy.deepcopy(other[place])
        elif isinstance(box, list):
            box.append(copy.deepcopy(box[key]))
        else:
            box[f"{key}_"] = box[key]
    return json.dumps(data)


def _boxes(data):
    """All dictionaries and lists in one another."""
    if isinstance(data, dict | list):
        yield data
        for x in data.values() if isinstance(data, dict) else data:
            yield from _boxes(x)


def _keys(box):
    return list(box) if isinstance(box, dict) else list(range(len(box)))


def mutant(language, k, texts):
    """The k-th damaged file."""
    rng = np.random.default_rng([len(language), *map(ord, language), k])
    text = pick(rng, texts)
    structured = damaged_json if language == "json" else damaged_xml
    way = pick(rng, (damaged_text, structured, structured, structured))
    data = way(rng, text).encode(errors="surrogatepass")
    if rng.integers(20) == 0:
        at = int(rng.integers(len(data) + 1))
        data = data[:at] + rng.bytes(3) + data[at:]
    return data


def compiled(data):
    """MuJoCo's own model of a text, if it can read it."""
    try:
        return mujoco.MjSpec.from_string(data.decode(errors="replace")).compile()
    except (ValueError, TypeError, RuntimeError, mujoco.FatalError):
        return None


def check_writers(model):
    """A model that was read is written and read again, or refused for a reason."""
    jd.from_dict(jd.to_dict(model))
    for write in (jd.to_urdf, jd.to_mjcf):
        try:
            write(model)
        except ValueError:
            pass


def check(language, data, path):
    """Read one file; where MuJoCo reads it too, compare mass and freedom."""
    path.write_bytes(data)
    options = {} if language == "json" else {"merge_fixed": False}
    options["inertia"] = ("as given", "nearest")[len(data) % 2]
    start = time.process_time()
    try:
        model = jd.load(path, **options)
    except ValueError:
        model = None
    seconds = time.process_time() - start
    assert seconds < SECONDS, f"{seconds} s"
    if model is not None:
        check_writers(model)
    if language == "mjcf" and model is not None:
        theirs = compiled(data)
        if theirs is not None:
            assert model.nv == theirs.nv
            mass = theirs.body_mass[1:].sum()
            np.testing.assert_allclose(model.mass.sum(), mass, rtol=1e-12)
    return model is not None


@pytest.mark.parametrize("language", ["urdf", "mjcf", "json"])
@pytest.mark.parametrize("count", [100, pytest.param(5000, marks=pytest.mark.slow)])
def test_damaged_files_are_models_or_value_errors(
    language, count, tmp_path, monkeypatch, without_type_checker
):
    monkeypatch.chdir(tmp_path)  # where MuJoCo writes its log
    texts, path, read = seeds()[language], tmp_path / f"robot.{language}", 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(count):
            data = mutant(language, k, texts)
            try:
                read += check(language, data, path)
            except Exception as error:
                raise AssertionError(f"mutant {k}: {error!r}:\n{data}") from error
    assert 0.02 * count < read < 0.98 * count
