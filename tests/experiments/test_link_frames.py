import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from experiments.parts.link_frames import (
    LinkFrames,
    link_forward_dynamics,
    link_frames,
    link_gibbs_appell,
    link_inertia_composite,
    link_inertia_gibbs_appell,
    link_kinematics,
    link_newton_euler,
    link_solve,
    regrouped,
)
from experiments.parts.link_frames._forward import (
    _shift_x,
    _shift_z,
    _turn_block_x,
    _turn_x,
    _turn_z,
)
from experiments.parts.link_frames._frames import similarity_x, similarity_z
from experiments.parts.link_frames._inertia import _moved
from experiments.parts.link_frames._inverse import acceleration_tensor, euler_moment
from jaxdyn.analysis import Polynomial, count_operations, operation_polynomials
from jaxdyn.dynamics import forward_dynamics, inverse_dynamics, mass_matrix
from jaxdyn.io import rotation_about
from jaxdyn.spatial import ArticulatedInertia, Mat3, Sym3, Vec3

PUBLISHED = json.loads(
    (Path(__file__).parents[1] / "data" / "operation_counts.json").read_text()
)["table"]


def random_chain(n, seed=0, convention="distal", gravity=(0.0, 0.0, -9.81)):
    rng = np.random.default_rng(seed)

    def link():
        box = jd.Inertial.box(rng.uniform(0.5, 3), rng.uniform(0.1, 0.6, 3))
        turn = rotation_about(np.array([0.6, 0.0, 0.8]), rng.uniform(0.5, 2))
        box = box.moved(turn, rng.uniform(-0.2, 0.2, 3))
        a, alpha, d = rng.uniform(0.2, 1.2, 3)
        return jd.DHLink(a=a, alpha=alpha, d=d, inertial=box)

    rows = [link() for _ in range(n)]
    return jd.from_dh(rows, convention=convention, gravity=gravity)


def slender_chain(n):
    rng = np.random.default_rng(0)
    rows = [
        jd.DHLink(a=a, alpha=alpha, d=d, inertial=jd.SlenderRods(m))
        for a, alpha, d, m in rng.uniform(0.2, 1.2, (n, 4))
    ]
    return jd.from_dh(rows)


ROBOTS = {
    "puma_560": jd.robots.puma_560,
    "puma_mohan_saha": jd.robots.puma_mohan_saha,
    "one link": lambda: random_chain(1),
    "distal": lambda: random_chain(6),
    "proximal": lambda: random_chain(6, 1, "proximal", (3.0, -2.0, 5.0)),
}


@pytest.fixture(params=ROBOTS)
def model(request):
    return ROBOTS[request.param]()


@pytest.fixture(params=["as given", "regrouped"])
def links(request, model):
    given = link_frames(model)
    return given if request.param == "as given" else regrouped(given)


def _close(found, expected):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * scale)


def _state(model, rng):
    return jnp.asarray(rng.normal(size=(3, model.nv)))


@pytest.mark.first
def test_gibbs_appell_gives_the_joint_forces(model, links, rng):
    state = _state(model, rng)
    found = jax.jit(link_gibbs_appell)(links, *state)
    _close(found, jax.jit(inverse_dynamics)(model, *state))


def test_newton_euler_gives_the_joint_forces(model, rng):
    state = _state(model, rng)
    found = jax.jit(link_newton_euler)(link_frames(model), *state)
    _close(found, jax.jit(inverse_dynamics)(model, *state))


@pytest.mark.parametrize("f", [link_inertia_composite, link_inertia_gibbs_appell])
def test_inertia_matrices_agree(f, model, links, rng):
    q, _, _ = _state(model, rng)
    _close(jax.jit(f)(links, q), jax.jit(mass_matrix)(model, q))


def test_solve_inverts_the_inertia_matrix(model, links, rng):
    q, _, x = _state(model, rng)
    _close(jax.jit(link_solve)(links, q, mass_matrix(model, q) @ x), x)


def test_forward_dynamics_agree(model, links, rng):
    state = _state(model, rng)
    found = jax.jit(link_forward_dynamics)(links, *state)
    _close(found, jax.jit(forward_dynamics)(model, *state))


def test_regrouped_links_have_seven_parameters(model):
    on_axis = np.asarray(regrouped(link_frames(model)).P)[:, 2:, 2:]
    assert not on_axis.any()


@pytest.mark.slow
def test_kinematics_are_those_of_the_centres_of_mass(rng):
    model = random_chain(4)
    q, qd, qdd = _state(model, rng)
    points = eqx.tree_at(lambda m: m.inertia, model, jnp.zeros_like(model.inertia))
    dc = jax.jit(link_kinematics)(link_frames(model), q, qd, qdd)[2].array()
    momentum = jax.jit(mass_matrix)(points, q) @ qd
    _close((model.mass * (dc**2).sum(axis=1)).sum(), qd @ momentum)


@pytest.mark.slow
def test_float32_stays_float32(rng):
    links = regrouped(link_frames(jd.robots.puma_560(dtype=jnp.float32)))
    state = jnp.asarray(rng.normal(size=(3, 6)), jnp.float32)
    assert link_forward_dynamics(links, *state).dtype == jnp.float32


def test_a_tree_has_no_link_frames():
    with pytest.raises(ValueError, match="serial chain of revolute"):
        link_frames(jd.robots.gripper())


def test_rotors_have_no_place_in_link_frames():
    with pytest.raises(ValueError, match="armature"):
        link_frames(jd.robots.puma_560(rotors=True))


def test_other_placements_are_refused():
    with pytest.raises(ValueError, match="from_dh"):
        link_frames(jd.robots.random_tree(0, 3, joints=("revolute",), branching=0.0))


def general(*, count, group=regrouped, chain=random_chain):
    return lambda n: (group(link_frames(chain(n))), *np.ones((count, n)))


def same(links: LinkFrames) -> LinkFrames:
    return links


def published(item, kind, source=""):
    (row,) = (r for r in PUBLISHED if r["item"] == item and source in r["source"])
    return Polynomial.of(row[kind])


def phi_solve(links, q, tau, bias):
    return link_solve(links, q, tau - bias)


BARS = {
    "inverse dynamics": (
        link_gibbs_appell,
        general(count=3),
        ("81n - 103", "69n - 94"),
        "inverse dynamics, DeNOC modules (proposed)",
    ),
    "inverse dynamics, links as given": (
        link_gibbs_appell,
        general(count=3, group=same),
        ("91n - 113", "79n - 104"),
        "inverse dynamics, Gibbs-Appell (proposed)",
    ),
    "inverse dynamics by Newton-Euler": (
        link_newton_euler,
        general(count=3, group=same),
        ("117n - 148", "90n - 117"),
        "inverse dynamics, recursive Newton-Euler, n revolute",
    ),
    "forward dynamics": (
        phi_solve,
        general(count=3),
        ("131n - 225", "124n - 229"),
        "forward dynamics, DeNOC modules (proposed)",
    ),
    "forward dynamics of slender rods": (
        phi_solve,
        general(count=3, chain=slender_chain),
        ("131n - 242", "124n - 248"),
        "forward dynamics, DeNOC + UDU^T, slender rods (proposed)",
    ),
    "inertia matrix by composite links": (
        link_inertia_composite,
        general(count=1),
        ("10n^2 - n - 27", "6n^2 + 17n - 48"),
        "inertia matrix, Gibbs-Appell (proposed)",
    ),
    "inertia matrix by Gibbs-Appell": (
        link_inertia_gibbs_appell,
        general(count=1),
        ("23/2 n^2 + 11/2 n - 40", "8n^2 + 21n - 67"),
        "inertia matrix, Gibbs-Appell (proposed)",
    ),
}


@pytest.mark.first
@pytest.mark.parametrize("name", BARS)
def test_counts_are_polynomials_at_or_below_the_published_ones(name):
    f, family, expected, item = BARS[name]
    found = operation_polynomials(f, family, range(4, 9))
    assert (str(found.M), str(found.A)) == expected
    for n in range(4, 50):
        assert found.M(n) <= published(item, "multiplications")(n)
        assert found.A(n) <= published(item, "additions")(n)


@pytest.mark.first
@pytest.mark.parametrize("name", BARS)
@pytest.mark.parametrize("n", [2, 3])
def test_short_chains_are_at_or_below_the_published_counts(name, n):
    f, family, _, item = BARS[name]
    count = count_operations(f, *family(n))
    assert count.M <= published(item, "multiplications")(n)
    assert count.A <= published(item, "additions")(n)


def test_no_published_inverse_dynamics_needs_fewer_operations():
    M, A = (Polynomial.of(x) for x in ({1: 81, 0: -103}, {1: 69, 0: -94}))
    rows = [r for r in PUBLISHED if r["item"].startswith("inverse dynamics")]
    for row in (r for r in rows if r["multiplications"]):
        assert M(6) < Polynomial.of(row["multiplications"])(6)
        assert A(6) < Polynomial.of(row["additions"])(6)


@pytest.mark.parametrize(
    ("method", "vectors", "expected"),
    [
        ("out", 1, (8, 4)),
        ("back", 1, (8, 4)),
        ("to_child", 2, (20, 12)),
        ("to_parent", 2, (20, 12)),
    ],
)
def test_a_change_of_frame_costs_what_its_docstring_says(method, vectors, expected):
    def moved(links, q, *vectors):
        link = jax.tree.map(lambda x: x[1], links.at(q))
        return getattr(link, method)(*map(Vec3.of, vectors))

    links = link_frames(random_chain(3))
    count = count_operations(moved, links, *np.ones((1 + vectors, 3)))
    assert (count.M, count.A) == expected


def _sym(x):
    return Sym3(*x)


def _articulated(x):
    B = Mat3.of(jnp.pad(x[6:12].reshape(3, 2), ((0, 0), (0, 1))))
    o = jnp.zeros(())
    return ArticulatedInertia(_sym(x[:6]), B, Sym3(x[12], x[13], o, x[14], o, o))


def _full(x):
    return ArticulatedInertia(_sym(x[:6]), Mat3.of(x[6:15].reshape(3, 3)), _sym(x[15:]))


TURNS = {"x": similarity_x, "z": similarity_z}


def _similar(axis, t, x):
    return TURNS[axis](jnp.cos(t), jnp.sin(t), _sym(x)).array()


@pytest.mark.parametrize("axis", TURNS)
def test_turned_matrices_agree_with_numpy(axis, rng):
    ts, xs = rng.normal(size=5), rng.normal(size=(5, 6))
    found = jax.jit(jax.vmap(lambda t, x: _similar(axis, t, x)))(ts, xs)
    R = np.stack([rotation_about(np.eye(3)["xyz".index(axis)], t) for t in ts])
    expected = R @ jax.vmap(lambda x: _sym(x).array())(xs) @ R.transpose(0, 2, 1)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14 * scale)


@pytest.mark.parametrize("axis", TURNS)
def test_turned_matrices_stay_float32(axis):
    found = _similar(axis, jnp.float32(1), jnp.ones(6, jnp.float32))
    assert found.dtype == jnp.float32


def test_the_reverse_derivative_of_a_turn_is_the_transpose_of_the_forward_one(rng):
    f = lambda *x: _similar("z", *x)  # noqa: E731
    args, d = ((rng.normal(), rng.normal(size=6)) for _ in range(2))
    y, dy = jax.jvp(f, args, d)
    back = jax.vjp(f, *args)[1](y)
    np.testing.assert_allclose(jnp.vdot(y, dy), sum(map(jnp.vdot, back, d)), rtol=1e-12)


def _changed(k, x):
    return similarity_z(k[2], k[3], similarity_x(k[0], k[1], _sym(x)))


@pytest.mark.parametrize(
    ("f", "size", "expected"),
    [
        (lambda k, x: acceleration_tensor(Vec3.of(x[:3]), Vec3.of(x[3:])), 6, (6, 9)),
        (lambda k, x: euler_moment(Mat3.of(x.reshape(3, 3)), _sym(k)), 9, (15, 15)),
        (
            lambda k, x: euler_moment(Mat3.of(x.reshape(3, 3)), Sym3(*k[:5], 0)),
            9,
            (13, 13),
        ),
        (lambda k, x: _moved(Vec3.of(k[:3]), Vec3.of(x)), 3, (9, 6)),
        (lambda k, x: _shift_z(k[0], _articulated(x)), 15, (8, 12)),
        (lambda k, x: _shift_x(k[0], _full(x)), 21, (10, 14)),
        (lambda k, x: similarity_z(k[0], k[1], _sym(x)), 6, (8, 8)),
        (lambda k, x: similarity_x(k[0], k[1], _sym(x)), 6, (8, 8)),
        (_changed, 6, (16, 16)),
        (lambda k, x: _turn_x(k[0], k[1], _sym(x)), 6, (8, 7)),
        (lambda k, x: _turn_block_x(k[0], k[1], Mat3.of(x.reshape(3, 3))), 9, (12, 11)),
        (lambda k, x: _turn_z(x[9], x[10], Mat3.of(x[:9].reshape(3, 3))), 11, (12, 11)),
    ],
)
def test_steps_cost_what_their_docstrings_say(f, size, expected):
    count = count_operations(f, np.array([0.3, 0.7, 1.1, 1.3, 1.7, 1.9]), np.ones(size))
    assert (count.M, count.A) == expected
