import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.stats

import jaxdyn as jd
from jaxdyn import identify
from jaxdyn.identify import Acceleration, Gaussian, Optax, Torque, choose, fit
from jaxdyn.io import Log
from tests.reference import load


def arm(joints=2):
    b = jd.ModelBuilder("arm")
    box = jd.Inertial.box(1.5, (0.3, 0.1, 0.15)).moved(np.eye(3), np.array([0.2, 0, 0]))
    axes = [(0, 0, 1), (0, 1, 0)]
    for k in range(joints):
        parent = f"link{k}" if k else None
        b.add_body(
            f"link{k + 1}",
            parent,
            axis=axes[k],
            p=(0.3 * k, 0, 0.1),
            inertial=box,
            damping=0.3,
            friction=0.2,
        )
    return b.build()


def measured(model, rng, rows=60, noise=0.0):
    q, qd, qdd = (jnp.asarray(rng.normal(size=(rows, model.nv))) for _ in range(3))
    tau = jax.jit(jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0)))(model, q, qd, qdd)
    tau = np.asarray(tau) + noise * rng.normal(size=tau.shape)
    return Log(0.1 * np.arange(rows), *map(np.asarray, (q, qd, qdd)), tau)


@pytest.fixture
def usual_types():
    """Optax mixes types of numbers."""
    with jax.numpy_dtype_promotion("standard"):
        yield


def test_torques_give_the_parameters_that_made_them(rng):
    true = arm()
    patterns = ["link2.mass", "link2.com_x", "*.damping", "*.friction"]
    start = {"*.mass": 3.0, "*.com_x": 0.1, "*.damping": 0.1, "*.friction": 1.0}
    chosen = choose(true, patterns, start=start)
    found = fit(chosen, Torque(), measured(true, rng))
    assert found.converged and found.rms < 1e-10 and found.validation_rms < 1e-10
    expected = chosen.values(jnp.zeros_like(chosen.theta))
    np.testing.assert_allclose(found.values, expected, rtol=1e-8)


@pytest.mark.slow
def test_accelerations_give_the_parameters_that_made_them(rng):
    true = arm(1)
    heavy = eqx.tree_at(lambda m: m.inertia, true, 2 * true.inertia)
    chosen = choose(heavy, ["link1.inertia", "*.damping"], start={"*.damping": 1.0})
    found = fit(chosen, Acceleration(), measured(true, rng))
    assert found.rms < 1e-9
    np.testing.assert_allclose(found.model.damping, true.damping, rtol=1e-8)
    np.testing.assert_allclose(
        found.model.inertia[0, 2, 2], true.inertia[0, 2, 2], rtol=1e-7
    )


@pytest.mark.slow
def test_optax_comes_to_the_same_place(rng, usual_types):
    true = arm(1)
    chosen = choose(true, ["*.damping", "*.friction"], start={"*": 0.5})
    log = measured(true, rng, noise=0.01)
    exact = fit(chosen, Torque(0.01), log)
    slow = Optax(optax.adam(0.05), steps=1500, every=1500)
    found = fit(chosen, Torque(0.01), log, solver=slow)
    np.testing.assert_allclose(found.values, exact.values, rtol=1e-6)
    np.testing.assert_allclose(found.std, exact.std, rtol=1e-5)
    second = Optax(optax.lbfgs(), steps=20, every=10)
    found = fit(chosen, Torque(0.01), log, solver=second)
    np.testing.assert_allclose(found.values, exact.values, rtol=1e-6)


def test_batches_and_patience(rng, usual_types):
    true = arm(1)
    chosen = choose(true, ["*.damping", "*.friction"], start={"*": 0.5})
    log = measured(true, rng, noise=0.01)
    schedule = optax.exponential_decay(0.1, 20, 0.8)
    solver = Optax(optax.adam(schedule), steps=1000, batch=8, every=20, patience=3)
    found = fit(chosen, Torque(0.01), log, solver=solver)
    assert found.converged and len(found.losses) < 1000
    assert found.validation_rms == pytest.approx(np.nanmin(found.validations))
    assert abs(found.model.damping[0] - 0.3) < 0.02


def test_values_that_data_do_not_tell_are_named(rng):
    true = arm(1)  # gravity along the axis: the mass has no effect but by m x²
    chosen = choose(true, ["link1.mass", "link1.com_x", "*.damping"])
    found = fit(chosen, Torque(0.01), measured(true, rng, noise=0.01))
    assert set(found.unknown) == {"link1.com_x", "link1.mass"}
    assert np.isinf(found.std).sum() == 2
    assert "not determined" in repr(found)


@pytest.mark.slow
def test_so_are_they_in_single_precision(rng):
    true = arm()
    log, chosen = measured(true, rng, noise=0.01), ["*.inertial", "*.damping"]
    exact = fit(choose(true, chosen), Torque(0.01), log)
    std = np.full(2, 0.01)  # in double precision, as least_squares gives it
    short = fit(choose(true.astype(np.float32), chosen), Torque(std), log)
    assert short.values.dtype == np.float32
    assert short.unknown == exact.unknown
    # first moments are known, the mass is not: nor is the height of its centre
    assert {"link2.mass", "link2.com_z"} <= set(exact.unknown)
    assert short.uncertainty.rank == exact.uncertainty.rank
    np.testing.assert_allclose(short.std[:2], exact.std[:2], rtol=1e-3)


def test_a_prior_decides_what_data_do_not_tell(rng):
    true = arm(1)
    start = {"*.mass": 3.0, "*.com_x": 0.1, "*.damping": 0.5}
    chosen = choose(true, ["link1.mass", "link1.com_x", "*.damping"], start=start)
    prior = Gaussian("link1.mass", 1e-3, mean=1.5)
    found = fit(chosen, Torque(0.01), measured(true, rng, noise=0.01), priors=prior)
    values = dict(zip(found.names, found.values, strict=True))
    assert abs(values["link1.mass"] - 1.5) < 5e-3
    assert not found.unknown


def test_standard_deviations_are_those_of_linear_least_squares(rng):
    true = arm(1)
    log = measured(true, rng, noise=0.05)
    found = fit(choose(true, ["*.damping", "*.friction"]), Torque(), log, validation=0)
    model = eqx.tree_at(
        lambda m: (m.damping, m.friction), true, (0 * true.damping,) * 2
    )
    Y = jax.vmap(jd.regressor, (None, 0, 0, 0))(model, log.q, log.qd, log.qdd)
    names = jd.parameter_names(true)
    columns = [names.index(f"j_link1.{x}") for x in ("damping", "friction")]
    A = np.asarray(Y)[:, 0, columns]
    covariance = np.linalg.inv(A.T @ A) * (found.residuals**2).sum() / (len(A) - 2)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-8)
    t = scipy.stats.t.ppf(0.95, len(A) - 2)
    log_ends = np.log(found.interval(0.9) / np.asarray(found.values)[:, None])
    half = t * found.std / found.values
    np.testing.assert_allclose(log_ends.T, [-half, half], rtol=1e-12)


@pytest.mark.slow
def test_intervals_of_weakly_determined_bodies_are_physically_possible(rng):
    true = arm()
    chosen = choose(true, ["link2.inertial", "j_link2.damping", "j_link1.axis"])
    found = fit(chosen, Torque(), measured(true, rng, noise=3.0), validation=0)
    values, (low, high) = np.asarray(found.values), found.interval().T
    names = np.array(found.names)
    positive = ["damping" in x or x.endswith(("mass", "xx", "yy", "zz")) for x in names]
    t = scipy.stats.t.ppf(0.975, found.uncertainty.freedom)
    assert "link2.mass" in names[values - t * found.std < 0]
    assert (low[positive] >= 0).all()  # rounded: of the widest zero is left
    assert (low <= values).all() and (values <= high).all()
    axis = ["axis" in x for x in names]
    assert np.abs(found.interval()[axis]).max() <= 1
    weak = positive & (found.std > values)
    assert weak.any() and not found.determined[weak].any()
    for name, is_known in zip(names, found.determined, strict=True):
        line = next(x for x in found.table().splitlines() if x.startswith(name))
        assert line.endswith("not determined") != is_known


def test_a_centre_of_zero_is_determined_beside_the_size_of_its_coordinate(rng):
    true = eqx.tree_at(lambda m: m.com, arm(), jnp.zeros((2, 3)))
    log = measured(true, rng, noise=0.1)
    found = fit(choose(true, "link2.com_x"), Torque(), log, validation=0)
    assert abs(found.values[0]) < 2 * found.std[0] < 0.1
    assert found.determined == [True]


def pulled_fits(rng, lags):
    """Fits of gravity, which is drawn from its priors, and the gravity of each."""
    model, q = arm(1), rng.normal(size=(40, 1))
    chosen, still = choose(model, "gravity"), np.zeros((40, 1))
    # the data tell x and y, and y about as well as its prior
    priors = Gaussian("gravity_y", 0.5), Gaussian("gravity_z", 0.1)
    at_rest = jax.jit(jax.vmap(jd.gravity_forces, (None, 0)))
    while True:
        drawn = model.gravity + jnp.asarray([0, 0.5, 0.1] * rng.normal(size=3))
        tau = at_rest(eqx.tree_at(lambda m: m.gravity, model, drawn), jnp.asarray(q))
        tau = np.asarray(tau) + 0.05 * rng.normal(size=tau.shape)
        log = Log(np.arange(40.0), q, still, still, tau)
        options = dict(priors=priors, validation=0, lags=lags)
        yield fit(chosen, Torque(1.0), log, **options), drawn


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("lags", [0, 2])
def test_errors_of_fits_with_priors_are_as_large_as_they_say(rng, lags):
    fits = list(itertools.islice(pulled_fits(rng, lags), 100))
    errors = [(np.asarray(found.values) - g) / found.std for found, g in fits]
    noise = [found.uncertainty.scale for found, _ in fits]
    # three standard deviations of means over 100 fits, with 38 freedoms each
    np.testing.assert_allclose(np.mean(np.square(errors), axis=0), 1, atol=0.42)
    np.testing.assert_allclose(np.mean(np.square(noise)), 0.05**2, rtol=0.07)
    untold = [found.std[2] for found, _ in fits]
    np.testing.assert_allclose(untold, 0.1, rtol=1e-9)


def test_lags_widen_intervals_where_noise_is_correlated(rng):
    true = arm(1)
    log = measured(true, rng, rows=400)
    noise = np.convolve(rng.normal(size=419), np.ones(20) / 20, "valid")[:, None]
    slow = np.sin(0.05 * np.arange(400))[:, None]
    q = np.zeros_like(log.q)
    tau = 0.3 * slow + 0.2 * slow / np.hypot(slow, true.friction_speed) + 0.1 * noise
    log = Log(log.ts, q, slow, np.zeros_like(q), tau)
    chosen = choose(true, ["*.damping"])
    plain = fit(chosen, Torque(), log, validation=0)
    honest = fit(chosen, Torque(), log, validation=0, lags=40)
    assert honest.values == plain.values
    assert honest.std[0] > 2 * plain.std[0]


def test_intervals_hold_the_truth_as_often_as_they_say(rng):
    true = arm(1)
    log = measured(true, rng, rows=40)
    chosen = choose(true, ["*.damping", "*.friction"])
    hits = 0
    for _ in range(60):
        noisy = eqx.tree_at(
            lambda x: x.tau, log, log.tau + 0.05 * rng.normal(size=log.tau.shape)
        )
        low, high = fit(chosen, Torque(), noisy, validation=0).interval(0.8).T
        hits += ((low < [0.3, 0.2]) & ([0.3, 0.2] < high)).sum()
    assert 0.7 < hits / 120 < 0.9  # three standard deviations of the count


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.parametrize("seed", range(3))
def test_fits_from_bad_starts_are_physically_possible(seed):
    rng = np.random.default_rng(seed)
    true = arm(2)
    chosen = choose(true, ["*.inertial", "*.damping"])
    bad = jnp.asarray(2 * rng.normal(size=chosen.theta.shape))
    chosen = eqx.tree_at(lambda c: c.theta, chosen, bad)
    solver = identify.LevenbergMarquardt(steps=25)
    found = fit(chosen, Torque(), measured(true, rng), solver=solver)
    pi = jd.inertial_parameters(found.model)
    assert np.linalg.eigvalsh(jax.vmap(jd.pseudo_inertia)(pi)).min() > 0
    assert (found.model.damping > 0).all()


@pytest.mark.slow
@pytest.mark.reference
def test_a_gripper_from_torques_that_another_program_computed():
    case = load("gripper")["cases"][0]
    true = jd.from_dict(case["model"])
    data = case["inverse_dynamics"]
    log = Log(*(np.asarray(data[x]) for x in ("t", "q", "qd", "qdd", "tau")))
    start = {"*.mass": 0.5, "*.com_x": 0.01}
    chosen = choose(true, ["link1_?.mass", "link?_2.com_x"], start=start)
    found = fit(chosen, Torque(1e-3), log)
    np.testing.assert_allclose(found.model.mass, true.mass, rtol=1e-10)
    np.testing.assert_allclose(found.model.com, true.com, rtol=1e-9)


def test_what_is_wrong_with_data_is_said(rng):
    model = arm(1)
    chosen = choose(model, "*.damping")
    log = measured(model, rng)
    with pytest.raises(ValueError, match="log has no qdd: call filtered"):
        fit(chosen, Torque(), Log(log.ts, log.q, log.qd, None, log.tau))
    with pytest.raises(ValueError, match="data is a list, expected a Log"):
        fit(chosen, Torque(), [1, 2])
    with pytest.raises(ValueError, match=r"q of the log has shape \(60, 1\).*'arm'"):
        fit(choose(arm(2), "*.damping"), Torque(), log)
    narrow = eqx.tree_at(lambda x: x.tau, measured(arm(2), rng), log.tau)
    with pytest.raises(ValueError, match=r"tau of the log has shape \(60, 1\)"):
        fit(choose(arm(2), "*.damping"), Torque(), narrow)
    bar = jd.robots.four_bar()
    with pytest.raises(ValueError, match="has loops .* Fit accelerations or motions"):
        fit(choose(bar, "*.mass"), Torque(), log)
    for name, make in {"steps": identify.LevenbergMarquardt, "every": Optax}.items():
        given = () if name == "steps" else (optax.sgd(0.1),)
        with pytest.raises(ValueError, match=f"{name} is 0, expected one or more"):
            make(*given, **{name: 0})
    for std, wrong in {
        0.0: "is 0.0, expected numbers above 0",
        -1.0: "is -1.0, expected",
        np.nan: "is nan, expected",
        (1.0, 1.0, 1.0): r"has shape \(3,\), expected one number or \(1,\)",
    }.items():
        std = np.array(std) if isinstance(std, tuple) else std
        for residual in (Torque, Acceleration):
            with pytest.raises(ValueError, match=f"{residual.__name__} {wrong}"):
                fit(chosen, residual(std), log)
    with pytest.raises(ValueError, match="validation is 1.5"):
        fit(chosen, Torque(), log, validation=1.5)
    with pytest.raises(ValueError, match="batch is 100, expected 1 to 48"):
        fit(chosen, Torque(), log, solver=Optax(optax.sgd(0.1), batch=100))
    with pytest.raises(ValueError, match="patience needs held-out rows"):
        solver = Optax(optax.sgd(0.1), patience=1)
        fit(chosen, Torque(), log, solver=solver, validation=0)


def test_fits_make_no_nan_on_their_way(rng, usual_types):
    model = arm(1)
    chosen, log = choose(model, "*.damping"), measured(model, rng)
    with jax.debug_nans(True):
        for solver in (None, Optax(optax.sgd(0.1), steps=4, every=2)):
            assert np.isfinite(fit(chosen, Torque(), log, solver=solver).losses).all()


def test_a_loss_that_is_not_finite_is_told(rng):
    model = arm(1)
    log = measured(model, rng)
    wrong = eqx.tree_at(lambda x: x.tau, log, log.tau * np.nan)
    chosen = choose(model, "*.damping")
    for solver in (identify.LevenbergMarquardt(), Optax(optax.sgd(0.1), steps=4)):
        with pytest.raises(RuntimeError, match="fit: The loss is not finite"):
            fit(chosen, Torque(), wrong, solver=solver)
    found = fit(chosen, Torque(), wrong, throw=False)
    assert not found.converged and found.unknown == ("j_link1.damping",)
    assert np.isinf(found.std).all() and "not determined" in repr(found)
