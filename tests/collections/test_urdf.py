"""Every URDF file of example-robot-data that Pinocchio reads moves as it says there."""

import sys
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


@pytest.mark.filterwarnings("ignore:model .* will (not )?move as its file says")
@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-3:]))
def test_it_loads_and_moves_as_in_pinocchio(path, rng):
    try:
        theirs = pinocchio.buildModelFromUrdf(str(path))
    except ValueError as error:
        pytest.skip(f"Pinocchio does not read it: {str(error)[:80]}")
    model = jd.load_urdf(path, skip=("joint/mimic",))  # as Pinocchio does by default
    if not theirs.nv:
        pytest.skip("nothing moves")
    none = jnp.zeros_like(model.damping)
    bare = replace(model, damping=none, friction=none)
    theirs.gravity.linear = np.asarray(model.gravity)
    x, qd, qdd = rng.normal(size=(3, theirs.nv))
    x = pinocchio.integrate(theirs, pinocchio.neutral(theirs), x)
    q, order = [], []
    for name, joint in zip(model.joint_names, model.joints, strict=True):
        other = theirs.joints[theirs.getJointId(name)]
        own = x[other.idx_q : other.idx_q + other.nq]
        is_circle = joint == "revolute" and other.nq == 2  # cosine and sine
        q += [np.arctan2(own[1], own[0])] if is_circle else list(own)
        order += range(other.idx_v, other.idx_v + other.nv)
    M, tau = found(bare, jnp.array(q), jnp.array(qd[order]), jnp.array(qdd[order]))
    data = theirs.createData()
    expected = np.triu(pinocchio.crba(theirs, data, x))
    expected = (expected + np.triu(expected, 1).T)[np.ix_(order, order)]
    forces = pinocchio.rnea(theirs, data, x, qd, qdd)[order]
    np.testing.assert_allclose(M, expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(tau, forces, atol=1e-12 * np.abs(forces).max())
