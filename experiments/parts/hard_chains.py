"""Seven chains that are hard for sums and joins in some other order, with a state each.

Masses and lengths that differ much, many joints in a row, and fast joints: where a
method loses digits, it is here.
"""

from typing import Any

import equinox as eqx
import numpy as np

import jaxdyn as jd

Chain = tuple[jd.Model, np.ndarray, np.ndarray, np.ndarray]
SLIDE = 0.1  # m, of a prismatic joint
LOAD = 1000.0  # times the mass of a cylinder, at the end of the rope
RATIO = 100.0  # of the masses of neighbours
SMALL, LARGE = (0.02, 0.1), (2.0, 10.0)  # m and kg, links in turn


def hard_chains(n: int) -> dict[str, Chain]:
    """Model, q, qd and tau of each chain of n joints, n even."""
    rng = np.random.default_rng(0)
    rope = _rope(n, rng)
    return {
        "random": _moved(_random(1, n, "revolute"), rng),
        "revolute and prismatic": _sliding(n, rng),
        "protein": helix(n, rng),
        "rope": rope,
        "rope with a load": (_loaded(rope[0]), *rope[1:]),
        "masses 1 to 100": _moved(_uneven(_random(3, n, "revolute")), rng),
        "tiny and big": _bent(tiny_and_big(n), rng),
    }


def tiny_and_big(n: int) -> jd.Model:
    """Links of [Mata] in turn: of 20 mm and 100 g, and of 2 m and 10 kg, in a plane."""
    b, end = jd.ModelBuilder(f"tiny_and_big_{n}", gravity=(0.0, -9.81, 0.0)), 0.0
    for i in range(n):
        length, mass = (SMALL, LARGE)[i % 2]
        box = jd.Inertial.box(mass, (length, 0.02, 0.02))
        b.add_body(
            f"b{i:04d}",
            i - 1 if i else None,
            "revolute",
            axis=(0.0, 0.0, 1.0),
            p=(end, 0.0, 0.0),
            inertial=box.moved(np.eye(3), np.array([length / 2, 0.0, 0.0])),
        )
        end = length
    return b.build()


def helix(n: int, rng: np.random.Generator) -> Chain:
    """A phi/psi chain of [Ghosal] as an alpha helix, a little bent."""
    model = jd.robots.protein_chain("A" * (n // 2))
    q, qd, tau = _state(model, rng)
    return model, np.where(np.arange(n) % 2, -0.82, -1.0) + 0.05 * q, qd, tau


def _random(seed: int, n: int, *joints: str) -> jd.Model:
    return jd.robots.random_tree(seed, n, joints=joints, branching=0.0)


def _state(model: jd.Model, rng: np.random.Generator) -> Any:
    """Random angles of half a radian, rates of 1 rad/s, forces of 1 N m."""
    return 0.5 * rng.normal(size=model.nq), *rng.normal(size=(2, model.nv))


def _moved(model: jd.Model, rng: np.random.Generator) -> Chain:
    return model, *_state(model, rng)


def _sliding(n: int, rng: np.random.Generator) -> Chain:
    model = _random(2, n, "revolute", "prismatic")
    q, qd, tau = _state(model, rng)
    is_slide = np.array(model.joints) == "prismatic"
    return model, np.where(is_slide, 2 * SLIDE * q, q), qd, tau


def _rope(n: int, rng: np.random.Generator) -> Chain:
    """The rope of [Shah], whose joints have two axes each, without forces."""
    model = jd.robots.rope(n // 2)
    q, qd, _ = _state(model, rng)
    return model, 0.3 * q, qd, np.zeros(model.nv)


def _bent(model: jd.Model, rng: np.random.Generator) -> Chain:
    """At rest, without forces, joints bent by a radian."""
    q, *_ = _state(model, rng)
    return model, 2 * q, np.zeros(model.nv), np.zeros(model.nv)


def _loaded(model: jd.Model) -> jd.Model:
    return _heavier(model, np.where(np.arange(model.n) == model.n - 1, LOAD, 1.0))


def _uneven(model: jd.Model) -> jd.Model:
    return _heavier(model, np.where(np.arange(model.n) % 2, RATIO, 1.0))


def _heavier(model: jd.Model, times: np.ndarray) -> jd.Model:
    """The same model with the mass and the inertia of each body some times as large."""
    return eqx.tree_at(
        lambda m: (m.mass, m.inertia),
        model,
        (model.mass * times, model.inertia * times[:, None, None]),
    )
