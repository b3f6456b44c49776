"""Bodies for what has no definite inertia."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn.identify._coordinates import least_moment, second_moments, upper_factor
from jaxdyn.model import Inertial, Model


def definite(
    model: Model, *, mass: float | None = None, radius: float | None = None
) -> Model:
    """The model with a small ball added to each body that has no definite inertia.

    Bodies without mass, points, rods and discs then have log-Cholesky coordinates.

    Args:
        mass, radius: of the ball, at the centre of the body; by default a thousandth of
            the mean mass of the bodies, and a tenth of the mean distance of joints.
    """
    leaves = (model.mass, model.com, model.inertia)
    bodies = [
        Inertial(float(m), c, I)
        for m, c, I in zip(*(np.asarray(x, float) for x in leaves), strict=True)
    ]
    weight = mass or 1e-3 * float(np.mean([x.mass for x in bodies]) or 1.0)
    lengths = np.linalg.norm(np.asarray(model.p, float), axis=1)
    moment = weight * (radius or 0.1 * (lengths.mean() or 1.0)) ** 2 / 5
    for i, body in enumerate(bodies):
        moments = second_moments(body.inertia)
        if body.mass > 0 and upper_factor(moments, model.dtype) is not None:
            continue
        # one that is lost in rounding needs a larger ball, and so does an inertia that
        # no body has, such as that of a hub
        more = max(moment, 2 * least_moment(moments, model.dtype))
        more += 2 * max(0.0, -np.linalg.eigvalsh(moments)[0])
        bodies[i] = body + Inertial(weight, body.com, 2 * more * np.eye(3))
    new = zip(*((x.mass, x.com, x.inertia) for x in bodies), strict=True)
    arrays = [jnp.asarray(np.array(x), model.dtype) for x in new]
    return eqx.tree_at(lambda m: (m.mass, m.com, m.inertia), model, arrays)
