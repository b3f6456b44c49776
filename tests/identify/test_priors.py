import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import jaxdyn as jd
from jaxdyn.identify import Gaussian, Geodesic, choose
from jaxdyn.identify._coordinates import log_definite
from tests.models import fork


@pytest.mark.parametrize("size", [0.0, 0.1, 1.0, 3.0])
def test_the_logarithm_of_a_definite_matrix(rng, size):
    A = scipy.linalg.expm(size * (lambda X: X + X.T)(rng.normal(size=(4, 4))) / 2)
    w, V = np.linalg.eigh(A)
    found = jax.jit(log_definite)(jnp.asarray(A))
    rounding = 1e-15 * w[-1] / w[0]  # of the smallest eigenvalue, relative
    expected = V @ np.diag(np.log(w)) @ V.T
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-13 + rounding)


def squared_distance(P, Q):
    """Of two positive definite matrices, in the affine-invariant metric."""
    return (np.log(scipy.linalg.eigvalsh(P, Q)) ** 2).sum() / 2


def pseudo_inertias(model):
    return np.asarray(jax.vmap(jd.pseudo_inertia)(jd.inertial_parameters(model)))


@pytest.mark.slow
def test_the_geodesic_prior_is_the_distance_of_pseudo_inertias(rng):
    model = fork()
    chosen = choose(model, ["*.inertial", "gravity"])
    theta = jnp.asarray(0.5 * rng.normal(size=chosen.theta.shape))
    residual = Geodesic(std=2.0).residual(chosen, theta)
    pairs = zip(
        pseudo_inertias(chosen.model(theta)), pseudo_inertias(model), strict=True
    )
    expected = sum(squared_distance(P, Q) for P, Q in pairs) / 4
    np.testing.assert_allclose((residual**2).sum(), expected, rtol=1e-11)


def test_the_geodesic_prior_has_derivatives_at_the_nominal_body():
    chosen = choose(fork(), "trunk.inertial")

    def half(theta):
        return (Geodesic().residual(chosen, theta) ** 2).sum() / 2

    slope, second = jax.jit(lambda x: (jax.grad(half)(x), jax.hessian(half)(x)))(
        chosen.theta
    )
    assert (slope == 0).all()
    expected = np.diag([8.0, 2, 2, 2, 1, 1, 1, 1, 1, 1])
    expected[0, 1:4] = expected[1:4, 0] = 2.0  # size and lengths
    np.testing.assert_allclose(second, expected, atol=1e-12)


def test_a_gaussian_prior_counts_standard_deviations():
    chosen = choose(fork(), ["*.mass", "left.inertia", "left.com"])
    theta = chosen.theta

    def residual(prior):
        return np.asarray(prior.residual(chosen, theta))

    assert np.allclose(residual(Gaussian("*.mass", 0.5, mean=2.0)), -2.0, atol=1e-14)
    damped = choose(fork(), "j_left.damping")  # 0 there, the search starts at 0.1
    found = Gaussian("j_left.damping", 0.05).residual(damped, damped.theta)
    np.testing.assert_allclose(found, 2.0, rtol=1e-15)
    assert residual(Gaussian("left.inertia_xy", 0.1)).shape == (1,)
    assert residual(Gaussian("left.com", 0.1)).shape == (3,)
    heavy = Gaussian("left.mass", 0.1, relative=True).residual(chosen, theta + 1.0)
    assert heavy[0] > 10


def test_wrong_priors_say_what_is_wrong():
    chosen = choose(fork(), "*.mass")
    with pytest.raises(ValueError, match=r"'\*.com' fits none of the chosen"):
        Gaussian("*.com", 1.0).residual(chosen, chosen.theta)
    with pytest.raises(
        ValueError, match=r"left.mass has no geodesic|trunk.mass has no"
    ):
        Geodesic("*.mass").residual(chosen, chosen.theta)
    down = choose(fork(), "gravity")
    with pytest.raises(ValueError, match="gravity_x is nominally 0, which has no sh"):
        Gaussian("gravity", 0.1, relative=True).check(down)
    for prior in (Gaussian, Geodesic):
        with pytest.raises(ValueError, match="has std 0.0, expected a number above 0"):
            prior("*.com", 0.0)
