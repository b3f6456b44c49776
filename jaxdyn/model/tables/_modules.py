"""The kinematic modules of a tree, as the papers cut it.

Host side and pure NumPy: nothing here is traced.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, repr=False)
class Modules:
    """The kinematic modules of a tree, [Shah] section 1.

    A module is a serial piece of the tree; its children start at its last body.

    Attributes:
        bodies: for each module the names of its bodies, base to tip.
        parents: for each module the number of its parent module, -1 for the base.
    """

    bodies: tuple[tuple[str, ...], ...]
    parents: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.bodies)

    def __repr__(self) -> str:
        rows = []
        modules = zip(self.bodies, self.parents, strict=True)
        for i, (names, parent) in enumerate(modules):
            source = f"M{parent + 1}" if parent >= 0 else "base"
            rows.append(f"M{i + 1} (from {source}): {', '.join(names)}")
        return "\n".join(rows)


def cut_modules(parents: tuple[int, ...], names: tuple[str, ...]) -> Modules:
    """The modules of a tree, numbered in the order of their first bodies."""
    children = np.bincount([p for p in parents if p >= 0], minlength=len(parents))
    module_of: list[int] = []
    bodies: list[list[str]] = []
    module_parents: list[int] = []
    for i, p in enumerate(parents):
        if p >= 0 and children[p] == 1:
            module_of.append(module_of[p])
            bodies[module_of[p]].append(names[i])
        else:
            module_of.append(len(bodies))
            bodies.append([names[i]])
            module_parents.append(module_of[p] if p >= 0 else -1)
    return Modules(tuple(map(tuple, bodies)), tuple(module_parents))
