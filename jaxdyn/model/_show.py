"""A model as text: its tree, joints, masses and conventions."""

from collections.abc import Mapping, Sequence

import numpy as np

from jaxdyn.model.elements import Couplings, Loop
from jaxdyn.model.tables import Topology

CONVENTIONS = (
    "SI units, radians. q and qd follow body order. Six-vectors: linear part first. "
    "Quaternions: x, y, z, w.\n"
    "Spherical and free rates are in body axes. Results for bodies are in world axes, "
    "at the body origin."
)
MAX_ROWS = 60


def show(
    topology: Topology,
    values: Mapping[str, np.ndarray] | None,
    loops: Sequence[Loop],
    couplings: Couplings | tuple[()],
) -> str:
    """The text of `repr(model)`; without `values` (traced, batched) its structure."""
    t = topology
    bodies = _count(len(t.names), "body", "bodies")
    head = f"Model {t.name!r}: {bodies}, nq = {t.nq}, nv = {t.nv}"
    if values is not None:
        head += f", mass {values['mass'].sum():.6g} kg"
        head += f", gravity {_vector(values['gravity'])}"
    rows = _tree(t)
    width = max(len(label) for label, _ in rows[:MAX_ROWS])
    lines = [head, t.base]
    for label, i in rows[:MAX_ROWS]:
        line = f"{label:<{width}}  {_joint(t, i, values):<34}  {_place(t, i):<9}"
        if values is not None:
            line += f"  {values['mass'][i]:.6g} kg"
        lines.append(line.rstrip())
    if len(rows) > MAX_ROWS:
        lines.append(f"... {len(rows) - MAX_ROWS} more bodies")
    if loops:
        lines.append(f"closed by {_count(len(loops), 'loop', 'loops')}")
        lines += [_loop(t, loop) for loop in loops[:MAX_ROWS]]
    if couplings:
        rows = zip(couplings.joints, couplings.sources, strict=True)
        lines += [_coupling(t, *row) for row in list(rows)[:MAX_ROWS]]
    return "\n".join([*lines, CONVENTIONS])


def _coupling(t: Topology, joint: int, sources: Sequence[int]) -> str:
    names = ", ".join(t.joint_names[i] for i in sources) or "nothing: it is still"
    way = "follows" if t.joints[joint] == "coupled" else "is driven through"
    return f"  {t.joint_names[joint]} {way} {names}"


def _loop(t: Topology, loop: Loop) -> str:
    names = (*t.names, t.base)  # -1 is the base
    along = f" along {', '.join('xyz'[i] for i in loop.axes)}" if loop.axes else ""
    bodies = f"{names[loop.body_a]} to {names[loop.body_b]}"
    return f"  {loop.name}: {bodies}, {loop.joint}{along}"


def _tree(t: Topology) -> list[tuple[str, int]]:
    """The label of each body, depth first: a module below its parent module."""
    children: dict[int, list[int]] = {i: [] for i in range(-1, len(t.names))}
    for i, p in enumerate(t.parents):
        children[p].append(i)
    rows: list[tuple[str, int]] = []
    first = children[-1]
    stack = [(i, "", "└ " if i == first[-1] else "├ ") for i in first[::-1]]
    while stack:
        i, indent, sign = stack.pop()
        rows.append((indent + sign + t.names[i], i))
        rest = "│ " if sign in ("├ ", "│ ") else "  "
        below = children[i]
        if len(below) == 1:
            stack.append((below[0], indent, rest))
        else:
            for j in reversed(below):
                stack.append((j, indent + rest, "└ " if j == below[-1] else "├ "))
    return rows


def _joint(t: Topology, i: int, values: Mapping[str, np.ndarray] | None) -> str:
    text = t.joints[i]
    axes = t.types[i].axes
    if values is not None and axes:
        text += " " + _vector(values["axis"][i])
        if axes == 2:
            text += " " + _vector(values["axis2"][i])
        if values["pitch"][i]:
            text += f" pitch {values['pitch'][i]:.4g}"
    return text


def _place(t: Topology, i: int) -> str:
    start, end = t.q_start[i], t.q_start[i + 1]
    if start == end:
        return ""
    return f"q[{start}]" if end == start + 1 else f"q[{start}:{end}]"


def _vector(v: np.ndarray) -> str:
    return "(" + ", ".join(f"{float(x) + 0.0:.4g}" for x in v) + ")"


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
