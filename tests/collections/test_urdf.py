"""Every URDF file of example-robot-data that Pinocchio reads moves as it says there."""

import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio
import pytest

import jaxdyn as jd

SHARED = "lib/python3*/site-packages/cmeel.prefix/share/example-robot-data"
FILES = sorted(Path(sys.prefix).glob(f"{SHARED}/robots/**/*.urdf"))


@jax.jit
def found(model, q, qd, qdd):
    return jd.mass_matrix(model, q), jd.inverse_dynamics(model, q, qd, qdd)


def test_the_collection_is_there():
    assert len(FILES) > 60, "run `make test-robots`"


def mimics(path):
    """Of each joint that follows another: that other, multiplier and offset."""
    found, joints = {}, ElementTree.parse(path).getroot().findall("joint")
    names = [joint.get("name") for joint in joints]
    for joint in joints:
        mimic = joint.find("mimic")
        is_moving = mimic is not None and joint.get("type") != "fixed"
        if is_moving and mimic.get("joint") in names:
            numbers = (mimic.get(x, y) for x, y in (("multiplier", 1), ("offset", 0)))
            found[joint.get("name")] = mimic.get("joint"), *map(float, numbers)
    return found


def positions(model, z, follows):
    """The position of each joint by name, as a list, from those of the model."""
    at = {x: z[model.q_slice(i)] for i, x in enumerate(model.joint_names)}

    def of(name):
        if name not in follows:
            return np.asarray(at[name])
        other, multiplier, offset = follows[name]
        return multiplier * of(other) + offset

    return {name: of(name) for name in at}


def projection(model, theirs, follows):
    """The matrix G from the rates of our coordinates to those of Pinocchio's joints."""
    G = np.zeros((theirs.nv, model.nv))
    for name in model.joint_names:
        factor, root = 1.0, name
        while root in follows:
            root, multiplier, _ = follows[root]
            factor *= multiplier
        own = theirs.joints[theirs.getJointId(name)]
        if own.nv:
            rows = range(own.idx_v, own.idx_v + own.nv)
            G[rows, model.v_slice(model.joint_names.index(root))] = factor * np.eye(
                own.nv
            )
    return G


def as_theirs(theirs, at):
    """Pinocchio's configuration for positions by joint."""
    x = pinocchio.neutral(theirs)
    for name, q in at.items():
        joint = theirs.joints[theirs.getJointId(name)]
        if joint.nq == 2 and len(q) == 1:  # cosine and sine
            q = np.cos(q[0]), np.sin(q[0])
        x[joint.idx_q : joint.idx_q + joint.nq] = q
    return x


@pytest.mark.filterwarnings("ignore:model .* will (not )?move as its file says")
@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-3:]))
def test_it_loads_and_moves_as_in_pinocchio(path, rng):
    try:
        theirs = pinocchio.buildModelFromUrdf(str(path))
    except ValueError as error:
        pytest.skip(f"Pinocchio does not read it: {str(error)[:80]}")
    model = jd.load(path)
    if not theirs.nv:
        pytest.skip("nothing moves")
    follows = mimics(path)
    none = jnp.zeros_like(model.damping)
    bare = replace(model, damping=none, friction=none)
    if bare.couplings:
        less = jnp.zeros_like(bare.couplings.damping)
        bare = replace(
            bare, couplings=replace(bare.couplings, damping=less, friction=less)
        )
    d, qd, qdd = rng.normal(size=(3, model.nv))
    q = jd.integrate(model, jd.neutral(model), jnp.array(d))
    M, tau = found(bare, q, jnp.array(qd), jnp.array(qdd))
    at = positions(model, np.asarray(q), follows)

    theirs.gravity.linear = np.asarray(model.gravity)
    data, G = theirs.createData(), projection(model, theirs, follows)
    x = as_theirs(theirs, at)
    whole = np.triu(pinocchio.crba(theirs, data, x))
    expected = G.T @ (whole + np.triu(whole, 1).T) @ G
    forces = G.T @ pinocchio.rnea(theirs, data, x, G @ qd, G @ qdd)
    np.testing.assert_allclose(M, expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(tau, forces, atol=1e-12 * np.abs(forces).max())
    if not jd.singular_joints(model):
        found_again = jd.forward_dynamics(bare, q, jnp.array(qd), tau)
        scale = np.abs(qdd).max() * np.linalg.cond(expected)
        np.testing.assert_allclose(found_again, qdd, atol=1e-15 * scale + 1e-12)
    if not follows:
        return
    try:
        coupled = pinocchio.buildModelFromUrdf(str(path), mimic=True)
    except ValueError:
        return  # it wants a joint to stand before those that follow it
    coupled.gravity.linear = np.asarray(model.gravity)
    order = [
        k
        for name in model.joint_names
        if name not in follows
        for k in range(coupled.joints[coupled.getJointId(name)].idx_v, coupled.nv)[
            : coupled.joints[coupled.getJointId(name)].nv
        ]
    ]
    x = as_theirs(coupled, {k: v for k, v in at.items() if k not in follows})
    v, a = np.zeros((2, coupled.nv))
    v[order], a[order] = qd, qdd
    theirs_too = pinocchio.rnea(coupled, coupled.createData(), x, v, a)[order]
    np.testing.assert_allclose(tau, theirs_too, atol=1e-12 * np.abs(forces).max())
