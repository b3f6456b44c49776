r"""The motion of all joints as a function of independent coordinates z.

$$q = g(z), \qquad \dot q = G(z)\, \dot z, \qquad \ddot q = G \ddot z + \dot G \dot z,
  \qquad \tau_z = G^T \tau$$

The last by the principle of virtual power. G is the identity but for a row for each
coupled joint, and is never formed: products with it cost O(n).
"""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.model._arguments import Nq, Nv
from jaxdyn.model._model import Model
from jaxdyn.model.elements import Couplings
from jaxdyn.model.tables import CoupledPlaces, coupled_places
from jaxdyn.program import exchange, put, take

Rates = Float[Array, " nv *columns"]  # of z
JointRates = Float[Array, " joints *columns"]  # of the tree


class CoupledRates(eqx.Module):
    """Products with G, its rate and its inverse, at one configuration.

    Attributes:
        slope: the derivatives of the coupled joints by their sources.
        inner: as in `Couplings`.
        curve: the second derivatives of the polynomials.
        at: where everything stands.
    """

    slope: Float[Array, "m k"]
    inner: Float[Array, "m k"]
    curve: Float[Array, " m"]
    at: CoupledPlaces = eqx.field(static=True)

    def rates(self, x: Rates) -> JointRates:
        """The product G x."""
        if x.ndim == 2:
            return jax.vmap(self.rates, in_axes=1, out_axes=1)(x)
        return self._whole(x, (self.slope * take(x, self.at.source_v)).sum(axis=1))

    def forces(self, tau: JointRates) -> Rates:
        """The product Gᵀ tau."""
        if tau.ndim == 2:
            return jax.vmap(self.forces, in_axes=1, out_axes=1)(tau)
        nz = self._nz
        both = put(tau, self.at.v, nz + len(self.curve))
        followed = self.slope * both[nz:, None]
        return both[:nz] + put(followed, self.at.source_v, nz)

    def bias(self, zd: Nv) -> Float[Array, " joints"]:
        """The joint accelerations where z does not accelerate: (dG/dt) zd."""
        return self.turning(zd, zd)

    def turning(self, zd: Nv, x: Rates) -> JointRates:
        """The product (dG/dt) x."""
        if x.ndim == 2:
            return jax.vmap(self.turning, in_axes=(None, 1), out_axes=1)(zd, x)
        rate, other = ((self.inner * take(y, self.at.source_v)).sum(1) for y in (zd, x))
        return self._whole(jnp.zeros_like(x), self.curve * rate * other)

    def independent(self, x: JointRates) -> Rates:
        """The z of rates G z: L x with L G = 1."""
        if x.ndim == 2:
            return jax.vmap(self.independent, in_axes=1, out_axes=1)(x)
        z = take(x, self.at.kept)
        places, _ = self.at.geared
        if not places.size:
            return z
        others = z - put(take(z, places), places, len(z))
        rest = take(z, places) - self._gears(others)
        return others + put(_times(self.inverse_gears, rest), places, len(z))

    def lifted(self, tau: Rates) -> JointRates:
        """Forces of joints whose Gᵀ is tau: Lᵀ tau."""
        if tau.ndim == 2:
            return jax.vmap(self.lifted, in_axes=1, out_axes=1)(tau)
        places, rows = self.at.geared
        if places.size:
            own = take(tau, places)
            driven = _times(self.inverse_gears.T, own)
            tau = tau + put(driven - own, places, len(tau))
            # what the gears take from coordinates that are not geared
            shares = take(self.slope, rows) * driven[:, None]
            moved = put(shares, self.at.source_v[rows], len(tau))
            tau = tau - moved + put(take(moved, places), places, len(tau))
        return put(tau, self.at.kept, len(self.at.v))

    def constraints(self) -> Float[Array, "d joints"]:
        """The matrix Phi with Phi G = 0: rows of the joints without a coordinate."""
        places, rows = self.at.removed
        slope, sources = take(self.slope, rows), self.at.source_v[rows]
        one = jnp.eye(len(rows), dtype=slope.dtype)

        def row(weights: Float[Array, " d"]) -> Float[Array, " joints"]:
            followed = put(slope * weights[:, None], sources, self._nz)
            return put(weights, places, len(self.at.v)) - self.lifted(followed)

        return jax.vmap(row)(one)

    @property
    def _nz(self) -> int:
        return len(self.at.kept)

    def _whole(self, z: Array, coupled: Array) -> Array:
        return take(jnp.concatenate([z, coupled]), self.at.v)

    def _gears(self, z: Nv) -> Array:
        _, rows = self.at.geared
        return (take(self.slope, rows) * take(z, self.at.source_v[rows])).sum(axis=1)

    @property
    def inverse_gears(self) -> Array:
        """The inverse of the square block of G for the geared joints."""
        places, _ = self.at.geared
        one = jnp.eye(len(places), dtype=self.slope.dtype)
        columns = jax.vmap(lambda x: self._gears(put(x, places, self._nz)))(one)
        return jnp.linalg.inv(columns.T)


def coupled_rates(model: Model, q: Nq) -> CoupledRates:
    """How the joints of a model with couplings move at `q`."""
    return _at(model, q)[1]


def whole(
    model: Model, q: Nq, qd: Nv | None = None, qdd: Nv | None = None
) -> tuple[Model, Array, Any, Any]:
    """The tree of all joints, their positions, rates and accelerations.

    As given for a model without couplings. Without `qd` the accelerations are those
    from rest, and without `qdd` those of coordinates that do not accelerate.
    """
    if not model.couplings:
        return model, q, qd, qdd
    positions, at = _at(model, q)
    rates = None if qd is None else at.rates(qd)
    parts = [] if qdd is None else [at.rates(qdd)]
    parts += [] if qd is None else [at.bias(qd)]
    return model.tree, positions, rates, sum(parts) if parts else None


def independent(model: Model, q: Array, qd: Array) -> tuple[Nq, Nv]:
    """The coordinates for positions and rates of all joints, if these are coupled.

    Those of joints that follow others play no role.
    """
    x = model.couplings
    if not x:
        return q, qd
    at = coupled_places(model.topology, x.tree, x.joints, x.sources)
    z = take(q, np.flatnonzero(at.own_q < model.nq))
    _, rows = at.geared
    if rows.size:
        geared = [i for i, joint in enumerate(model.joints) if joint == "geared"]
        own, theirs = (np.array(t.q_start)[geared] for t in (model.topology, x.tree))
        still = exchange(z, own, jnp.zeros(len(own), z.dtype))
        there, rates = _at(model, still)  # at zero: what the gears add is linear
        moved = _times(rates.inverse_gears, take(q, theirs) - take(there, theirs))
        z = exchange(z, own, moved)
    return z, coupled_rates(model, z).independent(qd)


def with_rate_leaves(model: Model, **leaves: Float[Array, " joints"]) -> Model:
    """The model with other leaves such as `damping`, for all joints of the tree."""
    x = model.couplings
    if not x:
        return replace(model, **leaves)
    at = coupled_places(model.topology, x.tree, x.joints, x.sources)
    kept = {name: take(leaf, at.kept) for name, leaf in leaves.items()}
    others = {name: take(leaf, at.removed[0]) for name, leaf in leaves.items()}
    return replace(model, couplings=replace(x, **others), **kept)


def reduced(model: Model, q: Nq, tau: JointRates) -> Rates:
    """The forces of the coordinates for forces of all joints; as given if they are."""
    return coupled_rates(model, q).forces(tau) if model.couplings else tau


def _times(A: Array, x: Array) -> Array:
    return jnp.matmul(A, x, precision="highest")


def _at(model: Model, q: Nq) -> tuple[Array, CoupledRates]:
    """The positions of all joints, and how they move."""
    x = model.couplings
    assert isinstance(x, Couplings)
    at = coupled_places(model.topology, x.tree, x.joints, x.sources)
    z = take(q, at.source_q)
    u = (x.inner * z).sum(axis=1)
    c = [x.polynomial[:, p] for p in range(x.polynomial.shape[1])]
    value = c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * c[4])))
    slope = c[1] + u * (2 * c[2] + u * (3 * c[3] + u * (4 * c[4])))
    curve = 2 * c[2] + u * (6 * c[3] + u * (12 * c[4]))
    followed = (x.linear * z).sum(axis=1) + value
    rates = CoupledRates(x.linear + slope[:, None] * x.inner, x.inner, curve, at)
    return take(jnp.concatenate([q, followed]), at.q), rates
