r"""The equations of a mechanism with loops, solved in four classes of complexity.

$$M x - \Psi^T \lambda = \varphi, \qquad \Psi x = b$$

[Ghosal] lecture 30. A solver holds what it needs of the matrices and is a function of
(phi, b). Dependent rows are allowed: x is the same whichever of them are
taken, and lambda is the solution of least norm, unless the solver says otherwise.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from jaxdyn.algorithms.couplings import CoupledFactor, DenseFactor
from jaxdyn.algorithms.derivatives import dense_factor, inertia_matrix
from jaxdyn.algorithms.kinematics import body_velocities, forward_kinematics
from jaxdyn.algorithms.loops._rows import (
    LoopRows,
    loop_jacobian,
    loop_matrix,
    loop_rows,
    row_forces,
    row_rates,
)
from jaxdyn.algorithms.recursions import Factor, newton_euler
from jaxdyn.model import Model, Nq, reduced, whole
from jaxdyn.program import collect
from jaxdyn.spatial import Scalar

Vector = Float[Array, "..."]
Pair = tuple[Vector, Vector]
AnyFactor = Factor | CoupledFactor | DenseFactor


def solve_saddle(model: Model, q: Nq, solver: Callable, phi: Vector, b: Vector) -> Pair:
    """The solution (x, lambda) by `solver(phi, b)`, which counts as a constant.

    Its derivatives are those of the equations.
    """

    # in one vector: JAX transposes a solution if all of the right-hand side varies

    def equations(unknowns: Vector) -> Vector:
        x, loop_forces = unknowns[: model.nv], unknowns[model.nv :]
        rows = loop_rows(model, forward_kinematics(model, q))
        f_ext = row_forces(model, rows, loop_forces)
        moved = body_velocities(model, q, x)
        tree, joints, _, rates = whole(_without_gravity(model), q, None, x)
        tau = newton_euler(tree, joints, jnp.zeros_like(rates), rates, f_ext)
        tau = reduced(model, q, tau + tree.armature * rates)
        return jnp.concatenate([tau, -row_rates(model, rows, moved.v, moved.w)])

    constant = lax.stop_gradient(solver)  # as in `solve_inertia`

    def solve(_: Callable, right: Vector) -> Vector:
        return jnp.concatenate(constant(right[: model.nv], -right[model.nv :]))

    right = jnp.concatenate([phi, -b])
    found = lax.custom_linear_solve(equations, right, solve, symmetric=True)
    return found[: model.nv], found[model.nv :]


class RangeSpace(eqx.Module):
    r"""Multipliers first, from (Psi M⁻¹ Psiᵀ) lambda = b - Psi M⁻¹ phi.

    O(n m² + m³). With M = U D Uᵀ and W = D^(-1/2) U⁻¹ Psiᵀ that matrix is Wᵀ W. It is
    not formed: the singular values of W show dependent rows without squaring them.
    """

    factor: AnyFactor
    W: Float[Array, "nv nc"]
    u: Float[Array, "nv k"]
    inverse: Float[Array, " k"]
    vt: Float[Array, "k nc"]

    def __call__(self, phi: Vector, b: Vector) -> Pair:
        y = self.factor.half(phi)
        r = self.inverse * _times(self.vt, b - _times(self.W.T, y))
        x = self.factor.other_half(y + _times(self.u, r))
        return x, _times(self.vt.T, self.inverse * r)


def range_space(
    model: Model, q: Vector, factor: AnyFactor, rows: LoopRows
) -> RangeSpace:
    """Prepare `RangeSpace`."""
    return _range_space(factor, mobility(model, q, factor, rows))


def _range_space(factor: AnyFactor, W: Float[Array, "nv nc"]) -> RangeSpace:
    u, s, vt = jnp.linalg.svd(W, full_matrices=False)
    return RangeSpace(factor, W, u, _inverted(s, cutoff(W)), vt)


def mobility(
    model: Model, q: Nq, factor: AnyFactor, rows: LoopRows
) -> Float[Array, "nv nc"]:
    """The matrix W = D^(-1/2) U⁻¹ Psiᵀ: what unit loop forces move."""
    return factor.half(_psi(model, q, factor, rows).T)


def kkt(model: Model, q: Vector, factor: AnyFactor, rows: LoopRows) -> RangeSpace:
    r"""Prepare the full system of n + m equations, by dense matrices: O((n + m)³).

    $$\begin{bmatrix} M & -\Psi^T \\ -\Psi & 0 \end{bmatrix} =
      \begin{bmatrix} L & 0 \\ 0 & V \end{bmatrix}
      \begin{bmatrix} 1 & -U \Sigma \\ -\Sigma U^T & 0 \end{bmatrix}
      \begin{bmatrix} L^T & 0 \\ 0 & V^T \end{bmatrix}$$

    with M = L Lᵀ and L⁻¹ Psiᵀ = U Sigma Vᵀ. Eigenvalues of the whole would have squares
    of small Sigma among them, and lose twice as many digits near a singular posture.
    """
    dense = dense_factor(inertia_matrix(model, q))
    return _range_space(dense, mobility(model, q, dense, rows))


class SequentialRegularization(eqx.Module):
    r"""A sequence of regularised systems by O(n) recursions.

    $$(M + \tfrac1\varepsilon \Psi^T \Psi)\, x_s = \varphi + \Psi^T (\lambda_{s-1} +
      \tfrac1\varepsilon b), \qquad \lambda_s = \lambda_{s-1} + \tfrac1\varepsilon
      (b - \Psi x_s)$$

    [Ascher], named by [Ghosal], for accelerations. With M = U D Uᵀ in hand that is
    $(\varepsilon + A) \lambda_s = \varepsilon \lambda_{s-1} + b - \Psi M^{-1} \varphi$,
    A = Psi M⁻¹ Psiᵀ, and conjugate gradients solve it. An iteration is one product with
    A, by recursions: O(n + m). It ends when Psi x = b to the relative `tolerance`;
    after `LIMIT` iterations that is an error.
    """

    model: Model
    q: Vector
    factor: Factor
    rows: LoopRows
    tolerance: float = eqx.field(static=True)

    def __call__(self, phi: Vector, b: Vector) -> Pair:
        x, loop_forces, _, is_solved = self.iterate(phi, b)
        return eqx.error_if((x, loop_forces), ~is_solved, _NOT_SOLVED)

    def iterate(
        self, phi: Vector, b: Vector
    ) -> tuple[Vector, Vector, Int[Array, ""], Bool[Array, ""]]:
        """The solution (x, lambda), the iterations, whether they were enough."""
        model, q, rows, solve = self.model, self.q, self.rows, self.factor.solve
        still, zero = _without_gravity(model), jnp.zeros_like(phi)

        def psi(x: Vector) -> Vector:
            moved = body_velocities(model, q, x)
            return row_rates(model, rows, moved.v, moved.w)

        def psi_t(loop_forces: Vector) -> Vector:
            f_ext = row_forces(model, rows, loop_forces)
            return -newton_euler(still, q, zero, None, f_ext)

        def A(loop_forces: Vector) -> Vector:
            return psi(solve(psi_t(loop_forces)))

        r = b - psi(solve(phi))
        loop_forces, k, is_solved = _regularized(A, r, self.tolerance)
        return solve(phi + psi_t(loop_forces)), loop_forces, k, is_solved


def sequential_regularization(
    model: Model, q: Nq, factor: Factor, rows: LoopRows, tolerance: float | None = None
) -> SequentialRegularization:
    """Prepare `SequentialRegularization`."""
    if tolerance is not None and not 0 < tolerance < 1:
        raise ValueError(f"tolerance is {tolerance}, expected a number from 0 to 1.")
    tolerance = tolerance or (1e-10 if q.dtype == jnp.float64 else 1e-5)
    return SequentialRegularization(model, q, factor, rows, tolerance)


def _regularized(
    A: Callable[[Vector], Vector], r: Vector, tolerance: float
) -> tuple[Vector, Int[Array, ""], Bool[Array, ""]]:
    """The solution of A x = r by sequential regularisation, the products, success."""
    length = jnp.linalg.norm(r)
    eps = REGULARIZATION * jnp.linalg.norm(A(r)) / jnp.maximum(length, _tiny(r))

    def is_solved(rest: Vector) -> Array:
        return jnp.linalg.norm(rest) <= tolerance * length

    def goes_on(state: tuple[Array, Array, Array]):
        _, rest, k = state
        return ~is_solved(rest) & (k < LIMIT)

    def advance(state: tuple[Array, Array, Array]):
        x, rest, k = state
        step, left, products = _conjugate_gradients(
            lambda v: eps * v + A(v), rest, 0.5 * tolerance * length
        )
        return x + step, left + eps * step, k + products  # rest - A step

    start = jnp.zeros_like(r), r, jnp.asarray(1)
    x, rest, k = lax.while_loop(goes_on, advance, start)
    return x, k, is_solved(rest)


REGULARIZATION = 1e-3  # epsilon, of the size of A
INNER = 1e-4  # by how much conjugate gradients reduce each system
LIMIT = 10_000  # iterations
_NOT_SOLVED = (
    f"sequential_regularization did not reach its tolerance in {LIMIT} iterations: the "
    "mechanism is near a singular posture (see loop_condition), or its loops are open. "
    "Use method='range_space' or 'recursive'."
)


def _conjugate_gradients(
    A: Callable[[Vector], Vector], b: Vector, goal: Array
) -> tuple[Vector, Vector, Int[Array, ""]]:
    """The solution of A x = b to `INNER` or to the goal, b - A x, and the products."""
    enough = jnp.maximum(INNER * jnp.linalg.norm(b), goal)

    def goes_on(state: tuple[Array, Array, Array, Array, Array]):
        _, _, _, square, k = state
        return (square > enough**2) & (k < LIMIT)

    def advance(state: tuple[Array, Array, Array, Array, Array]):
        x, r, p, square, k = state
        Ap = A(p)
        alpha = square / jnp.maximum((p * Ap).sum(), _tiny(p))
        x, r = x + alpha * p, r - alpha * Ap
        new = (r * r).sum()
        return x, r, r + (new / square) * p, new, k + 1

    start = jnp.zeros_like(b), b, b, (b * b).sum(), jnp.asarray(0)
    x, left, _, _, k = lax.while_loop(goes_on, advance, start)
    return x, left, k


def cutoff(matrix: Array) -> float:
    """The share of the largest singular value below which others count as zero."""
    return 10 * max(matrix.shape) * float(jnp.finfo(matrix.dtype).eps)


def _inverted(values: Array, share: float) -> Array:
    """1 / values, but zero for those below a share of the largest."""
    is_large = jnp.abs(values) > share * jnp.abs(values).max(initial=0)
    return jnp.where(is_large, 1 / jnp.where(is_large, values, 1), 0)


def _psi(
    model: Model, q: Nq, factor: AnyFactor, rows: LoopRows
) -> Float[Array, "nc nv"]:
    if not isinstance(factor, Factor):
        return loop_jacobian(model, q)
    at = collect(model.topology.lanes, factor.steps)
    return loop_matrix(model, at.step, at.r, rows)


def _times(A: Array, x: Array) -> Array:
    return jnp.matmul(A, x, precision="highest")


def _tiny(x: Array) -> Scalar:
    return jnp.finfo(x.dtype).tiny


def _without_gravity(model: Model) -> Model:
    return eqx.tree_at(lambda m: m.gravity, model, jnp.zeros_like(model.gravity))
