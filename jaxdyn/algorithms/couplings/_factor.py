r"""The inertia matrix Gᵀ M G of coupled joints, by a factor of the tree's M.

With Phi G = 0 and L G = 1, forces Phiᵀ lambda keep the joints together:

$$(G^T M G)^{-1} = L\, (M^{-1} - X S^{-1} X^T)\, L^T, \qquad X = M^{-1} \Phi^T,
  \quad S = \Phi X$$

O(n m + m³) for m joints that follow others.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular
from jaxtyping import Array, Float

from jaxdyn.model import CoupledRates

Rates = Float[Array, " nv *columns"]  # of the coordinates
JointRates = Float[Array, " joints *columns"]  # of the tree
FEW = 3  # rows up to which each is a solution of its own
UNROLLED = 12  # rows up to which the elimination is a part of the kernel


class CoupledFactor(eqx.Module):
    """A factor of Gᵀ M G.

    Attributes:
        tree: the factor of M.
        at: products with G.
        Phi, X, S: as above.
    """

    tree: Any  # a factor of M, such as `Factor`
    at: CoupledRates
    Phi: Float[Array, "d joints"]
    X: Float[Array, "joints d"]
    S: Float[Array, "d d"]

    @property
    def inverse_dynamics(self) -> Callable:
        """As in `InertiaFactor`."""
        return self.tree.inverse_dynamics

    def solve(self, b: Rates) -> Rates:
        """The solution x of Gᵀ M G x = b, for one or many right-hand sides."""
        return self.closed(self.tree.solve(self.at.lifted(b)))

    def closed(self, x: JointRates) -> Rates:
        """The coordinates of what forces of the couplings make of rates x."""
        return self.at.independent(x - _times(self.X, self._share(self.Phi, x)))

    def inverse(self) -> Float[Array, "nv nv"]:
        """The inverse of Gᵀ M G."""
        return self.solve(jnp.eye(len(self.at.at.kept), dtype=self.S.dtype))

    def half(self, b: Rates) -> JointRates:
        """Rates whose square is that of b in the inverse of Gᵀ M G."""
        return self._projected(self.tree.half(self.at.lifted(b)))

    def other_half(self, y: JointRates) -> Rates:
        """The rest of the solution, for y = `half` of b."""
        return self.at.independent(self.tree.other_half(self._projected(y)))

    def _projected(self, y: JointRates) -> JointRates:
        W = self.tree.half(self.Phi.T)
        return y - _times(W, self._share(W.T, y))

    def _share(self, rows: Array, x: Array) -> Array:
        """S⁻¹ rows x; few rows are eliminated one by one, as a part of a kernel."""
        b, size = _times(rows, x), len(self.S)
        if size > UNROLLED:
            return cho_solve(cho_factor(self.S, lower=True), b)
        S, y = list(self.S), list(b)
        for k in range(size):  # S is positive definite: no exchange of rows
            for i in range(k + 1, size):
                factor = S[i][k] / S[k][k]
                S[i], y[i] = S[i] - factor * S[k], y[i] - factor * y[k]
        for k in reversed(range(size)):
            others = sum((S[k][j] * y[j] for j in range(k + 1, size)), 0 * y[k])
            y[k] = (y[k] - others) / S[k][k]
        return jnp.stack(y) if size else b


def coupled_factor(tree: Any, at: CoupledRates) -> CoupledFactor:
    """The factor of Gᵀ M G by one of M."""
    Phi = at.constraints()
    if 0 < len(Phi) <= FEW:
        X = jnp.stack([tree.solve(row) for row in Phi], axis=1)
    else:
        X = tree.solve(Phi.T)
    return CoupledFactor(tree, at, Phi, X, _times(Phi, X))


class DenseFactor(eqx.Module):
    """A matrix M = L Lᵀ of coordinates as a factor.

    Attributes:
        L: of Cholesky's factorisation.
        inverse_dynamics: as in `InertiaFactor`.
    """

    L: Float[Array, "nv nv"]
    inverse_dynamics: Callable = eqx.field(static=True)

    def solve(self, b: Rates) -> Rates:
        """The solution x of M x = b."""
        return cho_solve((self.L, True), b)

    def inverse(self) -> Float[Array, "nv nv"]:
        """The inverse of M."""
        return self.solve(jnp.eye(len(self.L), dtype=self.L.dtype))

    def half(self, b: Rates) -> Rates:
        """The product L⁻¹ b."""
        return solve_triangular(self.L, b, lower=True)

    def other_half(self, y: Rates) -> Rates:
        """The product L⁻ᵀ y."""
        return solve_triangular(self.L, y, trans="T", lower=True)


def _times(A: Array, x: Array) -> Array:
    """The product A x; with few rows or columns in the kernel, which has no matmul."""
    if min(A.shape) > UNROLLED:
        return jnp.matmul(A, x, precision="highest")
    right = x if x.ndim == 2 else x[:, None]
    product = (A[:, :, None] * right[None]).sum(axis=1)
    return product if x.ndim == 2 else product[:, 0]
