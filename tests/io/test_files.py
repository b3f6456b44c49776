"""What all readers of files have in common: paths, encodings, numbers."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.cli._settings import Simulation
from jaxdyn.io import load_log, load_mjcf, load_trajectory, load_urdf, read_config
from jaxdyn.io._files import numbers

URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="{}"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""
MJCF = """<mujoco><worldbody><body><joint/><geom size="{}"/></body>
</worldbody></mujoco>"""


def log_of(path):
    return load_log(path, jd.robots.chain(1))


READERS = {
    ".urdf": load_urdf,
    ".xml": load_mjcf,
    ".csv": log_of,
    ".npz": log_of,
    ".toml": lambda path: read_config(path, Simulation),
    "": load_trajectory,
}


@pytest.mark.parametrize("ending", READERS)
def test_a_path_that_is_no_file_is_an_error(ending, tmp_path):
    (tmp_path / f"folder{ending}").mkdir()
    for path in (f"{tmp_path}/folder{ending}", f"none{ending}", f"a\0{ending}"):
        with pytest.raises(ValueError, match="cannot be read|there is no"):
            READERS[ending](path)


@pytest.mark.parametrize("read", [load_urdf, load_mjcf])
@pytest.mark.parametrize("source", ["", None, 5, b"<robot/>"])
def test_a_source_that_is_neither_path_nor_text_is_an_error(
    read, source, without_type_checker
):
    with pytest.raises(ValueError, match="the source is .*expected a path, or a text"):
        read(source)


@pytest.mark.parametrize("name", ["unknown", "utf-32", "shift_jis", "rot13", "hex"])
def test_encoding_that_is_not_known_is_an_error(name, tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text(f"<?xml version='1.0' encoding='{name}'?><robot name='r'/>")
    with pytest.raises(ValueError, match="robot.xml: .*expected XML in an encoding th"):
        load_urdf(file)


def test_settings_in_deep_brackets_are_an_error(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("a = " + "[" * 5000)
    with pytest.raises(ValueError, match="a.toml: is not TOML: maximum recursion"):
        read_config(file, Simulation)


WORDS = ["1_000", "١", "１.5", "1e1_0", "0x10", "1,5", "one"]


@pytest.mark.parametrize("word", WORDS)
def test_only_ascii_digits_make_a_number(word, tmp_path):
    with pytest.raises(ValueError):
        numbers(["1", word])
    with pytest.raises(ValueError, match="<mass value=.*expected one number"):
        load_urdf(URDF.format(word))
    if word != "0x10":  # MuJoCo reads hexadecimal numbers
        with pytest.raises(ValueError, match="MJCF text, line 1: .*format .* 'size'"):
            load_mjcf(MJCF.format(word))
    file = tmp_path / "log.csv"
    file.write_text(f't;j_link1.q\n0;0\n1;"{word}"\n')
    with pytest.raises(ValueError, match="line 3: j_link1.q is .*expected a number"):
        log_of(file)


def test_numbers_are_read_with_every_digit(rng):
    values = [*rng.normal(size=9), 0.1, -0.0, 5e-324, 1.7976931348623157e308, np.inf]
    words = [repr(float(x)) for x in values]
    np.testing.assert_array_equal(numbers(words), values)
    np.testing.assert_array_equal(numbers([" 1 ", "+2.", ".5E-1"]), [1, 2, 0.05])


def test_cell_beyond_all_measure_is_an_error(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(f"t,j_link1.q\n0,{'1' * 200_000}\n")
    with pytest.raises(ValueError, match="log.csv' is not a table: field larger than"):
        log_of(file)
