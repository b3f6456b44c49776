"""Mechanisms with closed loops whose motion independent software has computed."""

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from tests.reference import cases

MECHANISMS = {
    case["model"]["name"]: case for case in cases("closed_loops", "stewart_gough")
}
PLANAR = tuple(name for name in MECHANISMS if name != "stewart_gough")
GRAVITY = [0.0, -9.81, 0.0]
UPRIGHT = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # from z to y


@dataclass(frozen=True)
class Forest:
    """Mechanisms side by side in one model, each with the reference values it has.

    None of them feels the others, and one program is enough for all. Their bodies are
    called `mechanism.body`. By mechanism, `q`, `v` and `c` are the places of its
    coordinates, rates and rows of loops, and `coordinates` tells where in the rates
    those are that its own model lists under a name.
    """

    model: jd.Model
    q: dict[str, slice]
    v: dict[str, slice]
    c: dict[str, slice]

    def at(self, k: int, *path: str) -> jax.Array:
        """What the k-th reference states have at a path, one after the other."""
        found = [MECHANISMS[name]["states"][k] for name in self.q]
        for key in path:
            found = [x[key] for x in found]
        return jnp.asarray(np.concatenate(found))

    def coordinates(self, key: str) -> dict[str, list[int]]:
        """Coordinates that models list, such as `actuated`, counted from the first."""
        return {
            name: [place.start + i for i in MECHANISMS[name]["model"][key]]
            for name, place in self.v.items()
        }

    def forces_of(self, name: str, forces: Any) -> np.ndarray:
        """The loop forces of one mechanism along the axes of its own world."""
        found = np.asarray(forces)[self.c[name]]
        return found if name in PLANAR else (found.reshape(-1, 3) @ UPRIGHT).ravel()


@cache
def forest(*names: str) -> Forest:
    """All mechanisms or some, all of which weigh along -y."""
    models = {name: MECHANISMS[name]["model"] for name in names or MECHANISMS}
    bodies, loops = [], []
    for name, model in models.items():
        first = len(bodies)
        turn = np.eye(3) if name in PLANAR else UPRIGHT
        bodies += [_moved(body, name, first, turn) for body in model["bodies"]]
        for loop in model["loops"]:
            ends = {end: loop[end] + first for end in ("body_a", "body_b")}
            loops.append(loop | ends)
    data = {"name": "forest", "gravity": GRAVITY, "bodies": bodies, "loops": loops}
    rows = {n: sum(len(x["axes"]) for x in m["loops"]) for n, m in models.items()}
    return Forest(
        jd.from_dict(data),
        _places({name: model["nq"] for name, model in models.items()}),
        _places({name: model["nv"] for name, model in models.items()}),
        _places(rows),
    )


def _moved(body: dict, name: str, first: int, turn: np.ndarray) -> dict:
    moved = {key: x for key, x in body.items() if key not in ("idx_q", "idx_v")}
    moved["name"] = f"{name}.{body['name']}"
    if body["parent"] >= 0:
        return moved | {"parent": body["parent"] + first}
    place = body["joint"]["placement"]
    turned = {key: (turn @ np.array(place[key])).tolist() for key in ("R", "p")}
    return moved | {"joint": body["joint"] | {"placement": turned}}


def _places(sizes: dict[str, int]) -> dict[str, slice]:
    ends = accumulate(sizes.values())
    return {
        name: slice(end - size, end)
        for (name, size), end in zip(sizes.items(), ends, strict=True)
    }
