import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identify import consistent, least_squares
from tests.identify.linear_logs import (
    other_values,
    planar,
    random_log,
    seven,
    with_friction,
    with_noise,
)


def smallest(model):
    """The smallest eigenvalue of a pseudo-inertia."""
    J = jax.vmap(jd.pseudo_inertia)(jd.inertial_parameters(model))
    return np.linalg.eigvalsh(np.asarray(J)).min()


@pytest.mark.first
@pytest.mark.parametrize("make", [jd.robots.puma_560, seven])
def test_exact_data_give_a_physical_model_with_the_true_base_parameters(make, rng):
    model = with_friction(make(), rng)
    fit = least_squares(other_values(model, rng), random_log(model, rng))
    found = consistent(fit)
    np.testing.assert_allclose(found.beta, fit.base.of(model), rtol=1e-8, atol=1e-10)
    assert smallest(found.model) > 0
    assert found.model.friction.min() > 0


def wild(fit, rng):
    beta = rng.normal(size=fit.rank) * 10 ** rng.uniform(-2, 2, fit.rank)
    covariance = np.diag(10.0 ** rng.uniform(-8, 2, fit.rank))
    return dataclasses.replace(fit, beta=beta, covariance=covariance)


def test_any_numbers_give_a_physical_model(rng):
    model = with_friction(planar(), rng)
    fit = least_squares(model, random_log(model, rng))
    for _ in range(8):
        found = consistent(wild(fit, rng)).model
        assert smallest(found) > 0
        assert min(found.damping.min(), found.friction.min()) > 0


@pytest.mark.slow
def test_any_numbers_give_a_physical_puma(rng):
    model = with_friction(jd.robots.puma_560(), rng)
    fit = least_squares(model, random_log(model, rng))
    for _ in range(20):
        assert smallest(consistent(wild(fit, rng)).model) > 0


@pytest.mark.slow
def test_no_other_model_is_better(rng):
    true = with_friction(planar(), rng)
    nominal = other_values(true, rng)
    noisy = random_log(true, rng)
    noisy = with_noise(noisy, 0.5 * rng.normal(size=noisy.tau.shape))
    fit = least_squares(nominal, noisy, parameters="*.inertial")
    found = consistent(fit, weight=0.1)
    units = np.asarray(jax.vmap(jd.pseudo_inertia)(jnp.eye(10)))

    def matrices(model):
        return np.tensordot(np.asarray(jd.inertial_parameters(model)), units, 1)

    J, J0 = matrices(found.model), matrices(nominal)
    miss = np.linalg.solve(fit.covariance, found.beta - fit.beta)
    toward = np.linalg.inv(J0) - np.linalg.inv(J)
    slope = miss @ fit.base.B + 0.1 * np.einsum("bij,kij->bk", toward, units).ravel()
    bend = np.linalg.solve(J[:, None], units)
    bend = 0.1 * np.einsum("bkij,bkji->bk", bend, bend).ravel()
    bend += np.diag(fit.base.B.T @ np.linalg.solve(fit.covariance, fit.base.B))
    assert np.abs(slope / np.sqrt(bend)).max() < 1e-5
    assert found.misfit < 6


def test_what_the_data_do_not_tell_stays_nominal(rng):
    true = planar()
    log = random_log(true, rng)
    fit = least_squares(true, log, parameters="*.inertial")
    found = consistent(fit).model
    np.testing.assert_allclose(found.mass, true.mass, rtol=1e-6)
    np.testing.assert_allclose(found.inertia, true.inertia, atol=1e-7)


def test_parameters_that_are_not_free_stay(rng):
    true = with_friction(planar(), rng)
    nominal = eqx.tree_at(lambda m: m.com, true, true.com * 1.05)
    free = ("link2.h_?", "*.damping")
    fit = least_squares(nominal, random_log(true, rng), parameters=free)
    found = consistent(fit)
    same = np.asarray(jd.dynamic_parameters(nominal))
    now = np.asarray(jd.dynamic_parameters(found.model))
    kept = np.setdiff1d(np.arange(len(now)), fit.base.columns)
    np.testing.assert_allclose(now[kept], same[kept], atol=1e-15)
    np.testing.assert_array_equal(found.model.inertia[0], nominal.inertia[0])


@pytest.mark.slow
def test_single_precision_stays(rng):
    model = with_friction(planar(), rng).astype(jnp.float32)
    log = random_log(planar(), rng)
    found = consistent(wild(least_squares(model, log), rng)).model
    assert {x.dtype for x in jax.tree.leaves(found)} == {jnp.dtype("float32")}
    assert smallest(found) > 0


def test_bad_input_is_explained(rng):
    model = with_friction(planar(), rng)
    fit = least_squares(model, random_log(model, rng), parameters="link2.h_?")
    with pytest.raises(ValueError, match="weight is 0.0"):
        consistent(fit, weight=0.0)
    flat = eqx.tree_at(lambda m: m.inertia, model, 0 * model.inertia)
    with pytest.raises(ValueError, match="'link2' of model 'planar' is not physical"):
        consistent(dataclasses.replace(fit, model=flat))
