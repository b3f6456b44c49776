"""What can be fitted in a model: every number of it by name."""

import difflib
import fnmatch
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import equinox as eqx

from jaxdyn.model import Model

Path = tuple[str | int, ...]

POSITIVE = ("armature", "damping", "friction", "friction_speed", "stiffness")
CHOSEN = "none of the chosen parameters"
SYMMETRIC = ("xx", "xy", "xz", "yy", "yz", "zz")
_DIAGONAL = ("_xx", "_yy", "_zz")
_POSITIVE_ENDS = {"positive": "", "inertia": _DIAGONAL, "body": (".mass", *_DIAGONAL)}


@dataclass(frozen=True)
class Element:
    """Numbers of a model that are fitted together."""

    name: str  # as "link3.com_x"
    group: str  # the whole vector, as "link3.com"
    kind: str  # "body", "inertia", "positive", "free", "rotation" or "axis"
    leaf: Path  # where the numbers stand in the model
    at: int  # the row of that leaf, or the entry for "positive" and "free"

    @property
    def entries(self) -> list[tuple[Path, int]]:
        """All entries of leaves, as if these were flat, that belong to it."""
        if self.kind in ("positive", "free"):
            return [(self.leaf, self.at)]
        if self.kind == "body":
            widths = {"mass": 1, "com": 3, "inertia": 9}
            return [
                ((x,), self.at * k + j) for x, k in widths.items() for j in range(k)
            ]
        width = 3 if self.kind == "axis" else 9
        return [(self.leaf, self.at * width + j) for j in range(width)]

    @property
    def value_names(self) -> list[str]:
        """The names of the physical numbers it stands for."""
        if self.kind in ("positive", "free"):
            return [self.name]
        if self.kind == "body":
            body = self.name.removesuffix(".inertial")
            names = [f"{body}.mass", *(f"{body}.com_{x}" for x in "xyz")]
            return names + [f"{body}.inertia_{x}" for x in SYMMETRIC]
        ends = SYMMETRIC if self.kind == "inertia" else "xyz"
        return [f"{self.name}_{x}" for x in ends]

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Between which numbers each of `value_names` can be."""
        if self.kind == "axis":
            return [(-1.0, 1.0)] * 3
        positive = _POSITIVE_ENDS.get(self.kind, ())
        lows = (0.0 if x.endswith(positive) else -math.inf for x in self.value_names)
        return [(low, math.inf) for low in lows]


def elements(model: Model) -> list[Element]:
    """All that can be fitted in a model.

    Of a body: `inertial` (mass, centre and inertia together), `mass`, `com`, `inertia`.
    Of a joint: `armature`, `damping`, `friction`, `friction_speed`, `stiffness`, `rest`
    (not of quaternions), its placement `p`, `R` and its `axis`, `axis2`, `pitch`. Of a
    frame `p`, `R`; of a loop `p_a`, `R_a`, `p_b`, `R_b`; and `gravity`.
    """
    found = _vector("gravity", ("gravity",), 0)
    for i, body in enumerate(model.names):
        found.append(_whole(f"{body}.inertial", "body", (), i))
        found.append(_whole(f"{body}.mass", "positive", ("mass",), i))
        found += _vector(f"{body}.com", ("com",), i)
        found.append(_whole(f"{body}.inertia", "inertia", ("inertia",), i))
    for i in range(model.n):
        found += _joint(model, i)
    for i, frame in enumerate(model.frame_names):
        found += _placement(frame, ("frame_p",), ("frame_R",), i)
    for k, loop in enumerate(model.loops):
        for side in "ab":
            p, R = ("loops", k, f"p_{side}"), ("loops", k, f"R_{side}")
            found += _placement(loop.name, p, R, 0, f"_{side}")
    return found


def _joint(model: Model, i: int) -> list[Element]:
    joint, kind, t = model.joint_names[i], model.topology.types[i], model.topology
    found = []
    for leaf in POSITIVE:
        at = range(t.v_start[i], t.v_start[i + 1])
        found += _entries(f"{joint}.{leaf}", "positive", leaf, at)
    if kind.quaternion is None:
        at = range(t.q_start[i], t.q_start[i + 1])
        found += _entries(f"{joint}.rest", "free", "rest", at)
    found += _placement(joint, ("p",), ("R",), i)
    axes = ("axis", "axis2")[: kind.axes]
    found += [_whole(f"{joint}.{leaf}", "axis", (leaf,), i) for leaf in axes]
    if model.joints[i] == "helical":
        found.append(_whole(f"{joint}.pitch", "free", ("pitch",), i))
    return found


def _whole(name: str, kind: str, leaf: Path, at: int) -> Element:
    """An element that is no part of a vector."""
    return Element(name, name, kind, leaf, at)


def _entries(group: str, kind: str, leaf: str, at: range) -> list[Element]:
    ends = [""] if len(at) == 1 else [f"[{k}]" for k in range(len(at))]
    pairs = zip(ends, at, strict=True)
    return [Element(f"{group}{end}", group, kind, (leaf,), k) for end, k in pairs]


def _vector(group: str, leaf: Path, row: int) -> list[Element]:
    places = enumerate("xyz", start=3 * row)
    return [Element(f"{group}_{x}", group, "free", leaf, k) for k, x in places]


def _placement(name: str, p: Path, R: Path, row: int, end: str = "") -> list[Element]:
    turned = _whole(f"{name}.R{end}", "rotation", R, row)
    return [*_vector(f"{name}.p{end}", p, row), turned]


def matching(
    known: Sequence[Element],
    what: str,
    patterns: str | Sequence[str],
    where: str = "nothing in the model",
) -> list[Element]:
    """The elements whose name or group fits a pattern of the argument `what`."""
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    fits = [{x for x in known if fits_pattern(x, pattern)} for pattern in patterns]
    for pattern, some in zip(patterns, fits, strict=True):
        if not some:
            advice = _advice(known, pattern)
            raise ValueError(f"{what}: {pattern!r} fits {where}: {advice}")
    chosen = set().union(*fits)
    return [x for x in known if x in chosen]


def fits_pattern(element: Element, pattern: str) -> bool:
    """Whether a pattern is that of the element or of its group."""
    return is_named(element.name, pattern) or is_named(element.group, pattern)


def is_named(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern with * and ?; brackets stand for themselves."""
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def _advice(known: Sequence[Element], pattern: str) -> str:
    names = list(dict.fromkeys(x for e in known for x in (e.group, e.name)))
    near = difflib.get_close_matches(pattern, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {', '.join(map(repr, near))}?"
    ends = dict.fromkeys(x.group.rpartition(".")[2] for x in known)
    return f"names end with one of: {', '.join(ends)}."


def leaf_of(model: Any, path: Path) -> Any:
    """The leaf of a model that a path names."""
    step = lambda at, k: at[k] if isinstance(k, int) else getattr(at, k)  # noqa: E731
    return reduce(step, path, model)


def with_leaf(model: Model, path: Path, value: Any) -> Model:
    """The model with another leaf."""
    return eqx.tree_at(lambda m: leaf_of(m, path), model, value)
