from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from jaxdyn.io import NOT_NEGATIVE, POSITIVE, Check, config_dict, read_config


@dataclass(frozen=True)
class Gains:
    kp: float | list[float]
    kd: float = field(default=1.0, metadata={"check": NOT_NEGATIVE})


@dataclass(frozen=True)
class Line:
    kind: Literal["line"]
    start: tuple[float, float, float]


@dataclass(frozen=True)
class Circle:
    kind: Literal["circle"]
    radius: float = field(metadata={"check": POSITIVE})


@dataclass(frozen=True)
class Run:
    robot: str
    count: int = 1
    stop: bool = False
    method: Literal["denoc", "aba"] = "denoc"
    note: str | None = None
    gains: Gains = field(default_factory=lambda: Gains(2.0))
    cases: list[Gains] = field(default_factory=list)
    path: Line | Circle | None = None
    sizes: dict[str, list[int]] = field(default_factory=dict)
    data: Path | None = None
    written: Path | None = field(default=None, metadata={"must_exist": False})
    speeds: tuple[float, ...] = ()
    pair: list[float] = field(
        default_factory=list,
        metadata={"check": Check("two numbers", lambda x: len(x) == 2)},
    )
    free: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if self.speeds and len(self.speeds) != self.count:
            raise ValueError(
                f"speeds has {len(self.speeds)} numbers, expected count = {self.count}."
            )


@pytest.fixture
def config(tmp_path):
    def read(text, schema=Run):
        path = tmp_path / "run.toml"
        path.write_text(text)
        return read_config(path, schema)

    return read


def test_what_is_left_out_has_its_default(config):
    assert config("robot = 'gripper'") == Run("gripper")


def test_every_kind_of_value_is_read(config, tmp_path):
    (tmp_path / "data.json").touch()
    found = config(
        """
        robot = "rope"
        count = 2
        stop = true
        method = "aba"
        note = "free fall"
        data = "data.json"
        written = "later/out.npz"
        speeds = [1, 2.5]
        pair = [0, 1]
        sizes = {small = [1, 2], large = []}
        free = {anything = [1, "a", {b = 2}]}
        gains = {kp = [1, 2]}
        path = {kind = "line", start = [0, 0, 1]}
        [[cases]]
        kp = 3
        """
    )
    assert found == Run(
        robot="rope",
        count=2,
        stop=True,
        method="aba",
        note="free fall",
        gains=Gains([1.0, 2.0]),
        cases=[Gains(3.0)],
        path=Line("line", (0.0, 0.0, 1.0)),
        sizes={"small": [1, 2], "large": []},
        data=tmp_path / "data.json",
        written=tmp_path / "later/out.npz",
        speeds=(1.0, 2.5),
        pair=[0.0, 1.0],
        free={"anything": [1, "a", {"b": 2}]},
    )
    assert type(found.cases[0].kp) is float and type(found.pair[0]) is float
    assert config_dict(Gains(1.0)) == {"kp": 1.0, "kd": 1.0}
    assert "note" not in config_dict(Run("rope"))
    plain = config_dict(found)
    assert plain["data"] == str(tmp_path / "data.json")
    assert plain["path"] == {"kind": "line", "start": [0.0, 0.0, 1.0]}


R = "robot = 'rope'\n"


@pytest.mark.parametrize(
    "text, message",
    [
        ("count = 1", "robot is missing, expected a text: add it."),
        (R + "cuont = 1", r"cuont is not known, .*: did you mean count\?"),
        (R + "zzz = 1", "zzz is not known, expected only: robot, count, .*: remove it"),
        (R + "count = 1.5", "count is 1.5, expected a whole number."),
        (
            R + f"count = {10**30}",
            "count is 1000.*, expected a whole number below 2",
        ),
        (R + "count = true", "count is true, expected a whole number."),
        (R + "stop = 1", "stop is 1, expected true or false."),
        ("robot = 3", "robot is 3, expected a text."),
        (R + "method = 'abba'", "method is 'abba', expected one of: 'denoc', 'aba'."),
        (R + "note = 1", "note is 1, expected a text."),
        (R + "speeds = 3", "speeds is 3, expected a list, each a finite number."),
        (R + "speeds = [1, true]", r"speeds\[1\] is true, expected a finite number."),
        (R + "speeds = [nan]", r"speeds\[0\] is nan, expected a finite number."),
        (R + f"speeds = [1{'0' * 400}]", r"speeds\[0\] is 10.*\.\.\., expected a fin"),
        (R + "speeds = [1, 2]", "speeds has 2 numbers, expected count = 1."),
        (R + "pair = [1]", r"pair is \[1\], expected two numbers."),
        (R + "gains = 3", "gains is 3, expected a table."),
        (R + "gains = {kd = 3}", "gains.kp is missing, expected a finite number or a"),
        (R + "gains = {kp = 'a'}", "gains.kp is 'a', expected a finite number or a l"),
        (R + "gains = {kp = [1, 'a']}", r"gains.kp\[1\] is 'a', expected a finite nu"),
        (R + "gains = {kp = 1, kd = -1}", "gains.kd is -1, expected 0 or a number a"),
        (R + "cases = [{kp = 1}, {kq = 1}]", r"cases\[1\].kq is .* mean cases\[1\].kp"),
        (R + "sizes = {a = [1, 'b']}", r"sizes.a\[1\] is 'b', expected a whole number"),
        (R + "path = {start = [1]}", "path.kind is missing, .*: 'line', 'circle': add"),
        (R + "path = {kind = 'arc'}", "path.kind is 'arc', expected one of: 'line', "),
        (R + "path = {kind = 1}", "path.kind is 1, expected one of: 'line', "),
        (R + "path = {kind = 'circle', start = 1}", "path.start is not known, .* radi"),
        (R + "path = {kind = 'circle', radius = 0}", "path.radius is 0, expected a nu"),
        (R + "path = {kind = 'line', start = [1]}", r"start is \[1\], .* list of 3: a"),
        (R + "data = 'none.json'", "data is 'none.json', but there is no .*none.json"),
        (R + "data = 1979-05-27", "data is datetime.*, expected the path of a file"),
        ("robot = ", "is not TOML: Invalid value"),
        (R + R, "is not TOML: Cannot overwrite a value"),
    ],
)
def test_errors_name_file_key_what_was_found_and_what_is_allowed(text, message, config):
    with pytest.raises(ValueError, match=rf"run\.toml: .*{message}"):
        config(text)


def test_objections_of_a_part_have_its_key(config):
    @dataclass(frozen=True)
    class Part:
        x: int

        def __post_init__(self):
            raise ValueError("x is odd.")

    @dataclass(frozen=True)
    class Whole:
        part: list[Part]

    with pytest.raises(ValueError, match=r"run\.toml: part\[0\]: x is odd\.$"):
        config("part = [{x = 1}]", Whole)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.toml: cannot be read: No such file"):
        read_config(tmp_path / "none.toml", Run)
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        read_config(tmp_path, Run)
    (tmp_path / "bytes.toml").write_bytes(b"robot = '\xff'")
    with pytest.raises(ValueError, match=r"bytes\.toml: is not TOML"):
        read_config(tmp_path / "bytes.toml", Run)


def test_a_schema_that_cannot_be_is_the_programmers_error(config):
    @dataclass(frozen=True)
    class Wrong:
        x: complex

    with pytest.raises(TypeError, match="complex.* is not supported"):
        config("x = 1", Wrong)
