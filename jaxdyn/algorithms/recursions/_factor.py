"""The factor M = U D Uᵀ of the inertia matrix, by reverse Gaussian elimination."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Num

from jaxdyn.algorithms.recursions._newton_euler import newton_euler
from jaxdyn.algorithms.steps import (
    PlacedStep,
    WorldStep,
    filled,
    pairs,
    rates,
    world_steps,
)
from jaxdyn.model import Model, Nq, Nv, Topology
from jaxdyn.program import Laned, Lanes, collect, compiled, inward, outward, spread
from jaxdyn.spatial import (
    ArticulatedInertia,
    Scalar,
    Sym3,
    Twist,
    Vec3,
    Wrench,
    dot,
    pytree,
)

DENSE = 64  # joints up to which many columns are solved with U as a matrix


@pytree
class Eliminated:
    """What the elimination of one step leaves.

    Attributes:
        step: the step in world axes; r: its place.
        psi: the vector psi_i of [Mohan] eq. 33.
        m_hat: the pivot.
    """

    step: WorldStep
    r: Vec3
    psi: Wrench
    m_hat: Scalar


class Factor(eqx.Module):
    """The inertia matrix as U D Uᵀ: U unit upper triangular, D diagonal.

    Factored once in O(n); each right-hand side then costs O(n).

    Attributes:
        steps: all steps, eliminated, laned.
    """

    steps: Laned[Eliminated]
    topology: Topology = eqx.field(static=True)

    inverse_dynamics: ClassVar = staticmethod(newton_euler)

    def solve(self, b: Num[Array, " nv *columns"]) -> Float[Array, " nv *columns"]:
        """The solution x of M x = b, for one or many right-hand sides as columns."""
        b, nv = jnp.asarray(b), self.topology.nv
        if b.ndim not in (1, 2) or b.shape[0] != nv:
            raise ValueError(
                f"b has shape {b.shape}, expected ({nv},) or ({nv}, columns) for model "
                f"{self.topology.name!r}."
            )
        if jnp.issubdtype(b.dtype, jnp.complexfloating):
            raise ValueError("b is complex, expected real numbers.")
        own = self.steps[0].m_hat.dtype
        is_float = jnp.issubdtype(b.dtype, jnp.floating)
        dtype = np.result_type(own, b.dtype) if is_float else own
        cast, b = jax.tree.map(lambda x: x.astype(dtype), (self, b))
        return cast._solve(b)

    def other_half(self, y: Nv) -> Nv:
        r"""The product $U^{-T} D^{-1/2} y$: of y = `half` of b it is M⁻¹ b."""
        lanes = self.topology.lanes
        rows = spread(lanes, rates(self.topology, y))
        pairs = zip(rows, self.steps, strict=True)
        return self.substitute(tuple(y / jnp.sqrt(x.m_hat) for y, x in pairs))

    @compiled()
    def _solve(self, b: Float[Array, " nv *columns"]) -> Float[Array, " nv *columns"]:
        r"""First U phi_hat = b and D phi_tilde = phi_hat inward, then Uᵀ x = phi_tilde.

        [Shah] eq. 23 and Table 3, [Mohan] section 4, steps A to D. Small systems take
        many columns with U as a matrix: O(n²), but in long rows, which is faster for 7
        joints than one column after the other (`benchmarks/choices.py`).
        """
        if b.ndim == 1:
            return self.substitute(self._eliminated(b))
        if not 0 < self.topology.nv <= DENSE:
            return jax.vmap(self._solve, in_axes=1, out_axes=1)(b)
        above = self.U - jnp.eye(self.topology.nv, dtype=b.dtype)
        x = _removed(above.T, b, reverse=True)
        return _removed(above, x / self.D[:, None])

    @compiled()
    def half(self, b: Float[Array, " nv *columns"]) -> Float[Array, " nv *columns"]:
        r"""The product $D^{-1/2} U^{-1} b$, whose square is $b^T M^{-1} b$."""
        t = self.topology
        if b.ndim == 1:
            pairs = zip(self._eliminated(b), self.steps, strict=True)
            rows = tuple(phi_tilde * jnp.sqrt(x.m_hat) for phi_tilde, x in pairs)
            return collect(t.lanes, rows, t.dof_steps)
        if not 0 < t.nv <= DENSE:
            return jax.vmap(self.half, in_axes=1, out_axes=1)(b)
        above = self.U - jnp.eye(t.nv, dtype=b.dtype)
        return _removed(above.T, b, reverse=True) / jnp.sqrt(self.D)[:, None]

    def _eliminated(self, b: Nv) -> Laned[Array]:
        """The vector phi_tilde of [Shah] Table 3, step 1, laned."""
        lanes = self.topology.lanes

        def eliminate(eta: Wrench, x: tuple[Eliminated, Scalar]):
            at, phi = x
            phi_hat = phi - at.step.along(eta)
            eta = eta + at.psi * phi_hat
            return at.step.to_parent(eta), phi_hat / at.m_hat

        phi = spread(lanes, rates(self.topology, b))
        rows = tuple(zip(self.steps, phi, strict=True))
        return inward(lanes, eliminate, Wrench.zero(b.dtype), rows)[1]

    def substitute(self, phi_tilde: Laned[Array]) -> Nv:
        r"""The solution x of $U^T x = \tilde\varphi$: [Shah] Table 3, step 2."""

        def outwards(mu: Twist, x: tuple[Eliminated, Scalar]):
            at, phi_tilde = x
            mu = at.step.to_child(mu)
            qdd = phi_tilde - dot(mu, at.psi)
            return mu + at.step.column(qdd), qdd

        t, still = self.topology, Twist.zero(phi_tilde[0].dtype)
        rows = tuple(zip(self.steps, phi_tilde, strict=True))
        return collect(t.lanes, outward(t.lanes, outwards, still, rows), t.dof_steps)

    @property
    def U(self) -> Float[Array, "nv nv"]:
        """The unit upper triangular factor, [Shah] eq. 18 for single joints."""
        t = self.topology
        at = collect(t.lanes, self.steps, t.dof_steps)
        above = filled(t, pairs(t, at.step.column(1), at.r, at.psi))
        one = jnp.eye(t.nv, dtype=above.dtype)
        return above * (1 - one) + one

    @property
    def D(self) -> Nv:
        """The pivots m_hat; those of a real robot are positive."""
        pivots = tuple(x.m_hat for x in self.steps)
        return collect(self.topology.lanes, pivots, self.topology.dof_steps)

    @property
    def is_positive(self) -> Bool[Array, ""]:
        """Whether all pivots are positive, that is, whether M is positive definite."""
        return (self.D > 0).all()

    def matrix(self) -> Float[Array, "nv nv"]:
        """The product U D Uᵀ: the inertia matrix."""
        U = self.U
        return jnp.matmul(U * self.D[None], U.T, precision="highest")

    def inverse(self) -> Float[Array, "nv nv"]:
        """The inverse of the inertia matrix; O(n²) beyond 64 joints."""
        return self.solve(jnp.eye(self.topology.nv, dtype=self.D.dtype))

    def log_det(self) -> Float[Array, ""]:
        """The logarithm of the determinant of the inertia matrix."""
        return jnp.log(self.D).sum()


def _removed(rows: Array, b: Array, reverse: bool = False) -> Array:
    """b less each of its rows times a row of factors, one after the other."""

    def remove(x: Array, row: tuple[Array, Array]):
        factors, k = row
        return x - factors[:, None] * lax.dynamic_index_in_dim(x, k), None

    return lax.scan(remove, b, (rows, jnp.arange(len(rows))), reverse=reverse)[0]


def denoc_factor(model: Model, q: Nq) -> Factor:
    r"""The factor of the inertia matrix, armature included.

    $$\hat\psi_i = \hat M_i p_i, \quad \hat m_i = p_i^T \hat\psi_i, \quad
      \psi_i = \hat\psi_i / \hat m_i, \quad
      \hat M_{i-1} = M_{i-1} + A^T (\hat M_i - \hat\psi_i \psi_i^T) A$$

    [Mohan] eqs. 30 to 37 (with psi_i as here in eq. 33), [Shah] eqs. 18 to 21; O(n).
    """
    lanes = model.topology.lanes

    def inwards(children: ArticulatedInertia, x: tuple[PlacedStep, Scalar]):
        at, stay = x
        M_hat = at.inertia.articulated() + children
        psi, m_hat, M_bar = eliminate(M_hat, at.step, stay)
        return M_bar.shift(at.step.a), Eliminated(at.step, at.r, psi, m_hat)

    rows = tuple(zip(world_steps(model, q), stays(model), strict=True))
    _, kept = inward(lanes, inwards, ArticulatedInertia.zero(q.dtype), rows)
    return Factor(kept, model.topology)


def pivot_shares(model: Model, q: Nq) -> Nv:
    r"""How much of the inertia that it moves resists each joint.

    $$\hat m_i / (\mathrm{turn}^2\, tr\, \hat D_i + \mathrm{slide}^2\, tr\, \hat A_i
      + \mathrm{armature}_i)$$

    with the articulated inertia of what the joint carries. Rounding of that inertia is
    a share of the pivot that is larger by the inverse: where a link turns about a line
    on which nearly all of it lies, accelerations lose that many digits.
    """
    m_hat, own, _ = _pivots(model, q)
    return m_hat / own


def least_pivot(model: Model, q: Nq) -> Float[Array, ""]:
    """The least pivot relative to what its rounding is measured by, S."""
    m_hat, _, whole = _pivots(model, q)
    return (m_hat / whole).min(initial=1)


def _pivots(model: Model, q: Nq) -> tuple[Array, Array, Array]:
    """The pivots, and what their rounding is measured by: `pivot_shares`, and S.

    S is that of `singular_joints`: the sizes of all that M_hat was formed from.
    """
    t = model.topology

    def inwards(
        children: tuple[ArticulatedInertia, ArticulatedInertia],
        x: tuple[PlacedStep, Scalar],
    ):
        (at, stay), step = x, x[0].step
        M_hat = at.inertia.articulated() + children[0]
        psi, m_hat, M_bar = eliminate(M_hat, step, stay)
        size, p = _size(M_hat), step.column(1)
        S = children[1] + size
        y = S.apply(p)
        own, whole = step.along(size.apply(p)), step.along(y)
        u = y - psi * (0.5 * whole)
        S = S.minus_dyad(u, psi).minus_dyad(psi, u)  # Pᵀ S P with P = 1 - p psiᵀ
        handed = M_bar.shift(step.a), S.shift(step.a)
        return handed, (m_hat, own + stay, whole + stay)

    rows = tuple(zip(world_steps(model, q), stays(model), strict=True))
    none = ArticulatedInertia.zero(q.dtype)
    _, kept = inward(t.lanes, inwards, (none, none), rows)
    return collect(t.lanes, kept, t.dof_steps)


def _size(M: ArticulatedInertia) -> ArticulatedInertia:
    """The traces of the diagonal blocks of M as multiples of the identity."""
    A, D = (Sym3.diagonal(x.xx + x.yy + x.zz) for x in (M.A, M.D))
    return ArticulatedInertia(A, jax.tree.map(jnp.zeros_like, M.B), D)


def eliminate(
    M_hat: ArticulatedInertia, step: WorldStep, stay: Scalar
) -> tuple[Wrench, Scalar, ArticulatedInertia]:
    """psi, m_hat and M_bar of one step: its motion is eliminated."""
    psi_hat = M_hat.apply(step.column(1))
    m_hat = step.along(psi_hat) + stay
    # divisions, not a product with 1 / m_hat: where psi is 1 it must be 1 exactly
    psi = psi_hat / m_hat
    return psi, m_hat, M_hat.minus_dyad(psi_hat, psi)


def stays(model: Model, lanes: Lanes | None = None) -> Laned[Array]:
    """What is added to each pivot: the armature; 1 for steps that cannot move."""
    t = model.topology
    lanes = t.lanes if lanes is None else lanes
    terms = rates(t, model.armature), rates(t, jnp.ones(t.nv, model.dtype))
    return tuple(armature + (1 - moves) for armature, moves in spread(lanes, terms))
