import equinox as eqx
import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identify import base_parameters, least_squares
from jaxdyn.identify.linear._estimate import total, weighted
from jaxdyn.io import Log
from tests.identify.linear_logs import (
    forces,
    other_values,
    planar,
    random_log,
    seven,
    with_friction,
    with_noise,
)


@pytest.mark.first
@pytest.mark.parametrize("make", [jd.robots.puma_560, seven])
def test_exact_forces_give_exact_base_parameters(make, rng):
    model = with_friction(make(), rng)
    fit = least_squares(other_values(model, rng), random_log(model, rng))
    true = fit.base.of(model)
    assert fit.rank == base_parameters(model).rank
    np.testing.assert_allclose(fit.beta, true, rtol=1e-10, atol=1e-11)
    assert fit.validation_rms.max() < 1e-11


def test_parameters_that_are_not_free_keep_their_values(rng):
    model = with_friction(planar(), rng)
    free = ("link2.h_?", "*.friction")
    fit = least_squares(model, random_log(model, rng), parameters=free)
    assert fit.combinations == (
        "link2.h_x",
        "link2.h_y",
        "j_link1.friction",
        "j_link2.friction",
    )
    np.testing.assert_allclose(fit.beta, fit.base.of(model), rtol=1e-11)


def test_the_classical_covariance_is_that_of_the_normal_equations(rng):
    model = with_friction(planar(), rng)
    log = random_log(model, rng, 400)
    noisy = with_noise(log, 0.1 * rng.normal(size=(400, 2)))
    known = dict(noise=[0.1, 0.1], covariance="classical", validation=0.0)
    fit = least_squares(model, noisy, parameters="*.friction", **known)
    direction = log.qd / np.sqrt(log.qd**2 + 1e-6)
    power = np.sum(direction**2, axis=0)
    size = np.sum(fit.residuals**2) / 798
    np.testing.assert_allclose(fit.covariance, np.diag(size / power), atol=1e-18)
    error = np.sum(direction * (noisy.tau - log.tau), axis=0) / power
    np.testing.assert_allclose(fit.beta - model.friction, error, rtol=1e-10)


def test_the_noise_of_each_joint_is_found_and_weighs(rng):
    model = with_friction(planar(), rng)
    log, base = random_log(model, rng, 500), base_parameters(model)
    noise = np.array([3.0, 0.01])
    errors = {"ordinary": [], "weighted": []}
    for _ in range(10):
        noisy = with_noise(log, noise * rng.normal(size=(500, 2)))
        for method, found in errors.items():
            fit = least_squares(model, noisy, base=base, method=method)
            if method == "weighted":
                np.testing.assert_allclose(fit.noise, noise, rtol=0.15)
            found.append(fit.beta - base.of(model))
    spread = {k: np.std(x, axis=0) for k, x in errors.items()}
    k = base.combinations.index("link2.I_zz")
    assert spread["weighted"][k] < 0.1 * spread["ordinary"][k]


def coverage(model, log, base, draw, **options):
    """How often 95 % intervals contain the truth, over 60 draws of noise."""
    true, hits = base.of(model), []
    for _ in range(60):
        options |= dict(base=base, validation=0.0)
        low, high = (
            least_squares(model, with_noise(log, draw()), **options).interval().T
        )
        hits.append((low < true) & (true < high))
    return np.mean(hits)


def smooth_log(model, rows):
    """A slow motion: neighbours in time are alike, as their noise is."""
    ts = 0.02 * np.arange(rows)
    w, phase = np.array([1.3, 2.1]), np.array([0.3, 1.0])
    angle = w * ts[:, None] + phase
    other = 2.7 * w * ts[:, None]
    q = np.sin(angle) + 0.5 * np.cos(other)
    qd = w * np.cos(angle) - 1.35 * w * np.sin(other)
    qdd = -(w**2) * np.sin(angle) - 0.5 * (2.7 * w) ** 2 * np.cos(other)
    return Log(ts, q, qd, qdd, np.asarray(forces(model, q, qd, qdd)))


@pytest.mark.slow
def test_intervals_are_honest_also_where_noise_is_correlated_in_time(rng):
    model = with_friction(planar(), rng)
    log, base = smooth_log(model, 1000), base_parameters(model)

    def correlated():
        noise = rng.normal(size=(1004, 2))
        return 0.1 * np.stack([noise[k : k + 1000] for k in range(5)]).mean(axis=0)

    def white():
        return 0.1 * rng.normal(size=(1000, 2))

    assert 0.92 < coverage(model, log, base, white) < 0.975
    assert 0.9 < coverage(model, log, base, correlated) < 0.975
    assert coverage(model, log, base, correlated, covariance="classical") < 0.7


@pytest.mark.slow
def test_known_errors_of_the_motion_do_not_bias_the_total_method(rng):
    model = planar()
    log, base = (
        random_log(model, rng, 2000),
        base_parameters(model, parameters="*.I_zz"),
    )
    inertias = {"weighted": [], "total": []}
    for _ in range(20):
        once = eqx.tree_at(
            lambda x: x.qdd, log, log.qdd + 2.0 * rng.normal(size=(2000, 2))
        )
        twice = eqx.tree_at(
            lambda x: x.qdd, once, once.qdd + 2.0 * rng.normal(size=(2000, 2))
        )
        for method, found in inertias.items():
            disturbed = (twice,) if method == "total" else ()
            fit = least_squares(
                model, once, base=base, method=method, disturbed=disturbed
            )
            found.append(fit.beta / base.of(model))
    mean = {k: np.mean(x, axis=0) for k, x in inertias.items()}
    assert (mean["weighted"] < 0.9).all()
    np.testing.assert_allclose(mean["total"], 1.0, atol=0.02)


def test_the_total_method_without_known_errors_is_that_of_singular_vectors(rng):
    model = planar()
    log = random_log(model, rng, 500)
    noisy = eqx.tree_at(lambda x: x.qdd, log, log.qdd + rng.normal(size=(500, 2)))
    known = dict(noise=[0.5, 0.2], validation=0.0)
    fit = least_squares(model, noisy, method="total", **known)
    Y = jax.vmap(lambda *x: jd.regressor(model, *x))(noisy.q, noisy.qd, noisy.qdd)
    A = np.asarray(Y)[..., fit.base.columns][..., fit.base.independent]
    C = np.concatenate([A, noisy.tau[..., None]], axis=-1) / [[[0.5], [0.2]]]
    C = C.reshape(1000, -1)
    d = np.linalg.norm(C, axis=0)
    *_, v = np.linalg.svd(C / d)[2]
    expected = -v[:-1] / v[-1] * d[-1] / d[:-1]
    np.testing.assert_allclose(fit.beta, expected, rtol=1e-9)
    # and less biased than least squares where errors are as it takes them to be
    beta, A = np.array([1.0, -2.0, 3.0]), rng.normal(size=(20_000, 1, 3))
    b = A @ beta
    b = b + 0.3 * np.linalg.norm(beta) * rng.normal(size=b.shape)
    A = A + 0.3 * rng.normal(size=A.shape)
    start = weighted(A, b, None, "robust")
    assert (np.abs(start.beta) < 0.95 * np.abs(beta)).all()
    found = total(A, b, start, None, "robust")
    np.testing.assert_allclose(found.beta, beta, rtol=0.01)


def test_the_last_rows_are_held_out(rng):
    model = with_friction(planar(), rng)
    log = random_log(model, rng, 100)
    wrong = log.tau.copy()
    wrong[70:] += 1.0
    fit = least_squares(model, with_noise(log, wrong - log.tau), validation=0.3)
    np.testing.assert_allclose(fit.validation_residuals, np.ones((30, 2)), atol=1e-11)
    assert fit.rms.max() < 1e-11
    np.testing.assert_allclose(fit.validation_rms, [1.0, 1.0], atol=1e-11)
    assert least_squares(model, log, validation=0.0).validation_rms is None


def test_combinations_that_the_motion_hardly_tells_apart_are_named(rng):
    model = with_friction(planar(), rng)
    free = ("link2.h_x", "j_link2.damping", "j_link2.friction")

    def fit_at(qd):
        q, qdd = rng.normal(size=(2, 200, 2))
        tau = np.asarray(forces(model, q, qd, qdd)) + 0.01 * rng.normal(size=(200, 2))
        log = Log(0.01 * np.arange(200), q, qd, qdd, tau)
        return least_squares(model, log, parameters=free)

    rich = fit_at(3 * rng.normal(size=(200, 2)))
    poor = fit_at(np.sign(rng.normal(size=(200, 2))) * rng.uniform(1, 1.01, (200, 2)))
    assert rich.correlated() == []
    ((first, second, r),) = poor.correlated()
    assert (first, second) == ("j_link2.damping", "j_link2.friction") and r < -0.99
    assert poor.condition > 100 * rich.condition


def test_bad_input_is_explained(rng):
    model = planar()
    log = random_log(model, rng, 20)
    for options, message in (
        (dict(validation=1.0), "validation is 1.0"),
        (dict(noise=[1.0]), "expected 2 numbers above 0"),
        (dict(noise=[0.0, 1.0]), r"noise is \[0. 1.\]"),
        (dict(noise=[1.0, 1.0], method="ordinary"), "weighs all rows alike"),
        (dict(disturbed=log), "with 1 disturbed logs"),
        (dict(base=base_parameters(model), prefer="*.m"), "expected base alone"),
        (dict(validation=0.9), "2 rows to fit, 4 forces for"),
    ):
        with pytest.raises(ValueError, match=message):
            least_squares(model, log, **options)
    with pytest.raises(ValueError, match="the log has no tau: joint forces"):
        least_squares(model, eqx.tree_at(lambda x: x.tau, log, None))
    with pytest.raises(ValueError, match="level is 95"):
        least_squares(model, log).interval(95.0)
    still = Log(log.ts, 0 * log.q, 0 * log.qd, 0 * log.qdd, log.tau)
    base = base_parameters(model)
    with pytest.raises(ValueError, match="of base has no effect in the log"):
        least_squares(model, still, base=base)
    same = Log(log.ts, 0 * log.q + 1, 0 * log.qd + 1, 0 * log.qdd + 1, log.tau)
    with pytest.raises(ValueError, match="does not tell all combinations"):
        least_squares(model, same, base=base)
