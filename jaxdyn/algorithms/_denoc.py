"""The factor M = U D Uᵀ of the inertia matrix, by the DeNOC matrices."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.algorithms._bodies import bodies
from jaxdyn.algorithms._composite import pairs
from jaxdyn.algorithms._links import rates
from jaxdyn.algorithms._walk import Laned, collect, inward, outward, spread
from jaxdyn.model import Model, Topology
from jaxdyn.spatial import ArticulatedInertia, Vec3, dot


class Factor(eqx.Module):
    """The inertia matrix as U D Uᵀ: U unit upper triangular, D diagonal.

    Factored once in O(n); each right-hand side then costs O(n).

    Attributes:
        body: the steps in world axes, laned.
        psi: the vectors psi_i of [Mohan] eq. 33, force and moment, laned.
        m_hat: the pivots, laned.
    """

    body: Laned
    psi: Laned
    m_hat: Laned
    topology: Topology = eqx.field(static=True)

    def solve(self, b: Float[Array, " nv *columns"]) -> Float[Array, " nv *columns"]:
        r"""The solution x of M x = b, for one or many right-hand sides as columns.

        $U \hat\varphi = \varphi$, $D \tilde\varphi = \hat\varphi$, $U^T x =
        \tilde\varphi$: [Shah] eq. 23 and Table 3, [Mohan] section 4, steps A to D.
        """
        nv = self.topology.nv
        if b.ndim not in (1, 2) or b.shape[0] != nv:
            raise ValueError(
                f"b has shape {b.shape}, expected ({nv},) or ({nv}, columns) for model "
                f"{self.topology.name!r}."
            )
        if b.ndim == 2:
            return jax.vmap(self.solve, in_axes=1, out_axes=1)(b)
        lanes, zero = self.topology.lanes, Vec3.zero(b.dtype)

        def eliminate(eta: Any, x: Any) -> Any:  # [Shah] Table 3, step 1
            body, (psi_f, psi_n), m_hat, phi = x
            phi_hat = phi - body.along(*eta)
            eta = (eta[0] + psi_f * phi_hat, eta[1] + psi_n * phi_hat)
            return body.to_parent(*eta), phi_hat / m_hat

        def substitute(mu: Any, x: Any) -> Any:  # [Shah] Table 3, step 2
            body, (psi_f, psi_n), phi_tilde = x
            v, w = body.to_child(*mu)
            qdd = phi_tilde - dot(psi_f, v) - dot(psi_n, w)
            p_v, p_w = body.column(qdd)
            return (v + p_v, w + p_w), qdd

        phi = spread(lanes, rates(self.topology, b))
        rows = tuple(zip(self.body, self.psi, self.m_hat, phi, strict=True))
        _, phi_tilde = inward(lanes, eliminate, (zero, zero), rows)
        rows = tuple(zip(self.body, self.psi, phi_tilde, strict=True))
        x = outward(lanes, substitute, (zero, zero), rows)
        return collect(lanes, x, self.topology.dof_steps)

    @property
    def U(self) -> Float[Array, "nv nv"]:
        """The unit upper triangular factor, [Mohan] eq. 31, [Shah] eq. 18."""
        body, (f, n) = self._dense((self.body, self.psi))
        above = jnp.asarray(self.topology.ancestors)
        one = jnp.eye(self.topology.nv, dtype=f.x.dtype)
        return jnp.where(above, pairs(body, f, n), 0) * (1 - one) + one

    @property
    def D(self) -> Float[Array, " nv"]:
        """The pivots m_hat, all positive."""
        return self._dense((self.m_hat,))[0]

    def matrix(self) -> Float[Array, "nv nv"]:
        """The product U D Uᵀ: the inertia matrix."""
        U = self.U
        return jnp.matmul(U * self.D[None], U.T, precision="highest")

    def inverse(self) -> Float[Array, "nv nv"]:
        """The inverse of the inertia matrix, O(n²)."""
        return self.solve(jnp.eye(self.topology.nv, dtype=self.D.dtype))

    def log_det(self) -> Float[Array, ""]:
        """The logarithm of the determinant of the inertia matrix."""
        return jnp.log(self.D).sum()

    def _dense(self, fields: Any) -> Any:
        rows = tuple(zip(*fields, strict=True))
        return collect(self.topology.lanes, rows, self.topology.dof_steps)


def denoc_factor(model: Model, q: Float[Array, " nq"]) -> Factor:
    r"""The factor of the inertia matrix by reverse Gaussian elimination.

    $$\hat\psi_i = \hat M_i p_i, \quad \hat m_i = p_i^T \hat\psi_i, \quad
      \psi_i = \hat\psi_i / \hat m_i, \quad
      \hat M_{i-1} = M_{i-1} + A^T (\hat M_i - \hat\psi_i \psi_i^T) A$$

    [Mohan] eqs. 30 to 37 (with psi_i as here in eq. 33), [Shah] eqs. 18 to 21; O(n).
    Armature is added to the pivots. Steps without a degree of freedom have the pivot 1.
    """
    topology = model.topology
    lanes, dtype = topology.lanes, q.dtype
    body = bodies(model, q)

    def eliminate(children: ArticulatedInertia, x: Any) -> Any:
        body, armature, moves = x
        M_hat = body.inertia.articulated() + children
        psi_hat = M_hat.apply(*body.column(1))
        m_hat = body.along(*psi_hat) + armature + (1 - moves)
        psi = psi_hat[0] * (1 / m_hat), psi_hat[1] * (1 / m_hat)
        M_bar = M_hat.minus_square(*psi_hat, 1 / m_hat)
        return M_bar.shift(body.a), (psi, m_hat)

    moves = jnp.ones(topology.nv, dtype)
    pivots = spread(lanes, (rates(topology, model.armature), rates(topology, moves)))
    rows = tuple((b, *x) for b, x in zip(body, pivots, strict=True))
    _, kept = inward(lanes, eliminate, ArticulatedInertia.zero(dtype), rows)
    psi, m_hat = zip(*kept, strict=True)
    return Factor(body, tuple(psi), tuple(m_hat), topology)
