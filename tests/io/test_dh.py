import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.io import DHLink, from_dh, from_dict
from jaxdyn.model import Inertial, SlenderRods

DATA = Path(__file__).parents[1] / "data"
LETTERS = "RPRRPR"


def pose(R=None, p=(0, 0, 0)):
    T = np.eye(4)
    T[:3, :3] = np.eye(3) if R is None else R
    T[:3, 3] = p
    return T


def along_z(d):
    return pose(p=(0, 0, d))


def along_x(a):
    return pose(p=(a, 0, 0))


def about_z(t):
    c, s = np.cos(t), np.sin(t)
    return pose([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def about_x(t):
    c, s = np.cos(t), np.sin(t)
    return pose([[1, 0, 0], [0, c, -s], [0, s, c]])


def moved(row, q):
    """Angle and offset of a row when its joint stands at q."""
    turn, slide = (q, 0) if row.joint == "R" else (0, q)
    return row.theta + turn, row.d + slide


def distal(row, q):
    theta, d = moved(row, q)
    return about_z(theta) @ along_z(d) @ along_x(row.a) @ about_x(row.alpha)


def proximal(row, q):
    theta, d = moved(row, q)
    return about_x(row.alpha) @ along_x(row.a) @ about_z(theta) @ along_z(d)


def table_frames(rows, q, step):
    """The Denavit-Hartenberg frames as products of the matrices of the table."""
    frames, T = [], np.eye(4)
    for row, x in zip(rows, q, strict=True):
        T = T @ step(row, x)
        frames.append(T)
    return frames


def body_frames(model, q):
    """The body frames of a serial model: placement, then the motion of the joint."""
    frames, T = [], np.eye(4)
    for R, p, joint, x in zip(model.R, model.p, model.joints, q, strict=True):
        motion = about_z(x) if joint == "revolute" else along_z(x)
        T = T @ pose(R, p) @ motion
        frames.append(T)
    return frames


def frame(model, q):
    """The only frame of a model, which stands on its last body."""
    return body_frames(model, q)[-1] @ pose(model.frame_R[0], model.frame_p[0])


def centers(model, q):
    """The mass centres of all bodies in the world."""
    places = zip(body_frames(model, q), model.com, strict=True)
    return np.stack([(T @ np.append(c, 1))[:3] for T, c in places])


def world_inertias(model, q):
    places = zip(body_frames(model, q), model.inertia, strict=True)
    return np.stack([T[:3, :3] @ I @ T[:3, :3].T for T, I in places])


def random_rows(rng, **options):
    """A table with offsets everywhere."""
    numbers = rng.uniform(-1, 1, size=(len(LETTERS), 4))
    return [
        DHLink(*x, joint=letter, **options)
        for x, letter in zip(numbers.tolist(), LETTERS, strict=True)
    ]


def as_proximal(rows):
    """The same robot, with length and twist written in the row after."""
    before = [DHLink(), *rows]
    return [
        DHLink(b.a, b.alpha, row.d, row.theta, row.joint, row.inertial)
        for b, row in zip(before, rows, strict=False)
    ]


def pair(rng, **options):
    """One robot from its distal and from its proximal table."""
    rows = random_rows(rng, **options)
    last = rows[-1]
    rows[-1] = DHLink(0.0, 0.0, last.d, last.theta, last.joint, last.inertial)
    other = from_dh(as_proximal(rows), convention="proximal", tool="tool")
    return from_dh(rows, tool="tool"), other


@pytest.mark.parametrize(
    "convention, step", [("distal", distal), ("proximal", proximal)]
)
def test_the_tool_stands_at_the_product_of_the_table(rng, convention, step):
    rows, q = random_rows(rng), rng.normal(size=len(LETTERS))
    model = from_dh(rows, convention=convention, tool="tool")
    want = table_frames(rows, q, step)[-1]
    np.testing.assert_allclose(frame(model, q), want, atol=1e-13)


def test_proximal_bodies_are_the_frames_of_the_table(rng):
    rows, q = random_rows(rng), rng.normal(size=len(LETTERS))
    model = from_dh(rows, convention="proximal")
    want = table_frames(rows, q, proximal)
    np.testing.assert_allclose(body_frames(model, q), want, atol=1e-13)


def test_distal_bodies_stand_on_their_joint_axes(rng):
    rows, q = random_rows(rng), rng.normal(size=len(LETTERS))
    before = [np.eye(4), *table_frames(rows, q, distal)[:-1]]
    turns = [
        about_z(row.theta + (x if row.joint == "R" else 0))
        for row, x in zip(rows, q, strict=True)
    ]
    slides = [
        along_z(x if row.joint == "P" else 0) for row, x in zip(rows, q, strict=True)
    ]
    want = [T @ a @ b for T, a, b in zip(before, turns, slides, strict=True)]
    got = body_frames(from_dh(rows), q)
    np.testing.assert_allclose(got, want, atol=1e-13)


def test_distal_and_proximal_tables_of_one_robot_agree_at_the_tool(rng):
    one, two = pair(rng)
    q = rng.normal(size=one.nq)
    np.testing.assert_allclose(frame(one, q), frame(two, q), atol=1e-13)


@pytest.mark.parametrize("quantity", [centers, world_inertias])
def test_distal_and_proximal_tables_of_one_robot_have_the_same_rods(rng, quantity):
    one, two = pair(rng, inertial=SlenderRods(2.0, payload=0.5, hub=0.1))
    q = rng.normal(size=one.nq)
    np.testing.assert_allclose(quantity(one, q), quantity(two, q), atol=1e-13)


@pytest.mark.parametrize(
    "convention, step", [("distal", distal), ("proximal", proximal)]
)
def test_inertial_data_are_in_the_frames_of_the_table(rng, convention, step):
    body = Inertial(1.0, rng.normal(size=3), np.diag([1.0, 1.5, 2.0]))
    rows, q = random_rows(rng, inertial=body), rng.normal(size=len(LETTERS))
    model = from_dh(rows, convention=convention)
    want = [T @ np.append(body.com, 1) for T in table_frames(rows, q, step)]
    np.testing.assert_allclose(centers(model, q), np.stack(want)[:, :3], atol=1e-13)


def test_inertias_turn_with_the_frames_of_the_table(rng):
    I = np.diag([1.0, 1.5, 2.0])
    rows = random_rows(rng, inertial=Inertial(1.0, np.zeros(3), I))
    q = rng.normal(size=len(LETTERS))
    want = [T[:3, :3] @ I @ T[:3, :3].T for T in table_frames(rows, q, distal)]
    np.testing.assert_allclose(world_inertias(from_dh(rows), q), want, atol=1e-13)


def mohan_saha():
    data = json.loads((DATA / "puma_mohan_saha.json").read_text())
    table = data["parameters"]
    keys = "a", "alpha", "b", "m", "hub_inertia_about_joint_axis"
    columns = zip(*(table[key] for key in keys), strict=True)
    rows = [
        DHLink(
            float(a), float(t), float(b), inertial=SlenderRods(float(m), hub=float(h))
        )
        for a, t, b, m, h in columns
    ]
    return from_dh(rows, name="puma_mohan_saha"), from_dict(data["model"])


def puma_560():
    data = json.loads((DATA / "mata_puma_line.json").read_text())["model"]
    keys = "a", "alpha", "d", "com_in_dh_frame", "inertia_diag_in_dh_frame_about_com"
    columns = zip(*(data["dh"][key] for key in keys), data["bodies"], strict=True)
    rows = [
        DHLink(
            *map(float, (a, t, d)),
            inertial=Inertial(body["mass"], np.array(com, float), np.diag(I)),
        )
        for a, t, d, com, I, body in columns
    ]
    model = from_dh(rows, name="puma560", check_inertia=False)
    return model, from_dict(data)


robots = pytest.mark.parametrize("robot", [mohan_saha, puma_560])
# inertias of the PUMA are kept as published
published = pytest.mark.filterwarnings("ignore:model 'puma560' will move")


@pytest.mark.reference
@published
@robots
def test_published_tables_have_the_leaves_of_the_reference_models(robot):
    got, want = (jax.tree.leaves(model) for model in robot())
    flat = [np.concatenate([np.ravel(x) for x in leaves]) for leaves in (got, want)]
    np.testing.assert_allclose(*flat, atol=1e-12)


@pytest.mark.reference
@published
@robots
def test_published_tables_have_the_topology_of_the_reference_models(robot):
    got, want = robot()
    assert repr(got.topology) == repr(want.topology)


def test_bodies_are_named_by_number_unless_named():
    rows = [DHLink(), DHLink(name="elbow"), DHLink()]
    assert from_dh(rows).names == ("link1", "elbow", "link3")


def test_a_proximal_rod_along_x_has_the_length_of_the_next_row():
    rods = SlenderRods(2.0, hub=0.1)
    rows = [DHLink(a=5.0, inertial=rods), DHLink(a=0.6, d=0.2, inertial=rods)]
    model = from_dh(rows, convention="proximal")
    np.testing.assert_allclose(model.com, [[0.3, 0, 0], [0, 0, -0.1]], atol=1e-16)


def test_the_tool_is_the_only_frame_and_stands_on_the_last_body():
    model = from_dh([DHLink(), DHLink()], tool="gripper")
    assert (model.frame_names, model.frame_bodies) == (("gripper",), (1,))


def test_without_a_tool_there_is_no_frame():
    assert from_dh([DHLink()]).frame_names == ()


def test_effects_of_a_row_are_those_of_its_joint():
    rows = [DHLink(), DHLink(effects={"damping": 0.3})]
    np.testing.assert_array_equal(from_dh(rows).damping, [0, 0.3])


def test_leaves_have_the_asked_dtype():
    leaves = jax.tree.leaves(from_dh([DHLink()], dtype=jnp.float32))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype(jnp.float32)}


IMPOSSIBLE = Inertial(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0]))


@pytest.mark.parametrize(
    "rows, options, message",
    [
        ([DHLink()], {"convention": "standard"}, "convention is 'standard', expected"),
        ([DHLink(), DHLink(joint="S")], {}, "body 'link2': joint is 'S', expected 'R'"),
        ([], {}, "model 'robot' has no bodies"),
        ([DHLink(inertial=SlenderRods(1.0))], {}, "'link1': .*a and b are both 0"),
        (
            [DHLink(), DHLink(a=1.0, inertial=SlenderRods(1.0), name="last")],
            {"convention": "proximal"},
            "body 'last': .*a and b are both 0",
        ),
        ([DHLink(name="")], {}, "a body has the name '', expected a text"),
        ([DHLink(inertial=IMPOSSIBLE)], {}, "body 'link1': .*triangle inequality"),
        ([DHLink(effects={"drag": 1.0})], {}, "body 'link1': 'drag' is not known"),
        ([DHLink(name="a"), DHLink(name="a")], {}, "body 'a' has a name that is taken"),
        ([DHLink()], {"tool": "link1"}, "frame 'link1' has a name that is taken"),
    ],
)
def test_from_dh_says_what_is_wrong(rows, options, message):
    with pytest.raises(ValueError, match=message):
        from_dh(rows, **options)


@pytest.mark.parametrize(
    "key, value, message",
    [
        ("a", "1", "a is '1', expected one number"),
        ("alpha", None, "alpha is None, expected one number"),
        ("d", [1.0], r"d is \[1.0\], expected one number"),
        ("theta", np.nan, "theta is nan, expected finite numbers"),
        ("joint", ["R"], r"joint is \['R'\], expected 'R' or 'P'"),
        ("inertial", 1.0, "inertial is 1.0, expected Inertial or SlenderRods"),
        (
            "inertial",
            Inertial(1.0, np.array("0")),
            "com is array.*, expected 3 numbers",
        ),
        ("effects", [0.1], r"effects is \[0.1\], expected a dictionary such as"),
        ("effects", {1: 0.1}, r"effects is {1: 0.1}, expected a dictionary such as"),
    ],
)
def test_wrong_types_in_a_row_are_named(key, value, message, without_type_checker):
    with pytest.raises(ValueError, match=f"body 'link2': {message}"):
        from_dh([DHLink(), DHLink(**{key: value})])


def test_wrong_types_around_the_rows_are_named(without_type_checker):
    with pytest.raises(ValueError, match="rows is 5, expected a list of DHLink"):
        from_dh(5)
    with pytest.raises(ValueError, match=r"row 1 is \(0, 0\), expected a DHLink"):
        from_dh([DHLink(), (0, 0)])
    with pytest.raises(ValueError, match="convention is 1, expected 'distal'"):
        from_dh([DHLink()], convention=1)
    with pytest.raises(
        ValueError, match="slender link: mass is '1', expected a finite"
    ):
        SlenderRods("1")
