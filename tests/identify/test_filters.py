import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identify import filtered
from jaxdyn.io import Log

RATE = 200.0
TS = np.arange(2001) / RATE


def slider_and_hinge(dtype=None):
    b = jd.ModelBuilder("slider_and_hinge")
    box = jd.Inertial.box(1.0, (0.1, 0.2, 0.3))
    b.add_body("a", joint="prismatic", axis=(0, 0, 1), inertial=box)
    b.add_body("b", "a", axis=(1, 0, 0), inertial=box)
    return b.build(dtype)


def every_way():
    """A body in space, with a ball joint, a hinge and a slider on it."""
    b = jd.ModelBuilder("every_way")
    box = jd.Inertial.box(1.0, (0.1, 0.2, 0.3))
    b.add_body("body", joint="free", inertial=box)
    b.add_body("ball", "body", "spherical", inertial=box)
    b.add_body("hinge", "ball", "revolute", axis=(1, 0, 0), inertial=box)
    b.add_body("slider", "hinge", "prismatic", axis=(0, 1, 0), inertial=box)
    return b.build()


def wave(t, frequency=1.0, phase=0.3):
    w = 2 * np.pi * frequency
    x = w * t + phase
    return np.sin(x), w * np.cos(x), -(w**2) * np.sin(x)


def waves(frequency=1.0, noise=0.0, rng=None):
    """Two coordinates and what their rates and accelerations are."""
    q, qd, qdd = (
        np.stack([a, b], axis=1)
        for a, b in zip(wave(TS, frequency), wave(TS, frequency, 1.7), strict=True)
    )
    measured = q if rng is None else q + noise * rng.normal(size=q.shape)
    return Log(TS, measured, tau=3 * measured), (q, qd, qdd)


def gain(frequency, cutoff, order=4):
    ratio = np.tan(np.pi * frequency / RATE) / np.tan(np.pi * cutoff / RATE)
    return 1 / (1 + ratio ** (2 * order))


def at_times(log, exact):
    """The rows of the exact arrays at the times of the log."""
    rows = np.rint(log.ts * RATE).astype(int)
    np.testing.assert_allclose(TS[rows], log.ts, rtol=2 * np.finfo(log.ts.dtype).eps)
    return [x[rows] for x in exact]


def test_derivatives_of_waves_are_theirs():
    log, exact = waves()
    found = filtered(log, slider_and_hinge(), cutoff=40.0, trim=1.0)
    q, qd, qdd = at_times(found, exact)
    np.testing.assert_allclose(found.q, q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.qd, qd, rtol=0, atol=2e-12)
    np.testing.assert_allclose(found.qdd, qdd, rtol=0, atol=3e-10)
    np.testing.assert_allclose(found.tau, 3 * q, rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("frequency", [4.0, 10.0, 20.0])
def test_waves_keep_the_part_that_is_promised(frequency, order):
    """So there is no lag either: a wave that is late would differ."""
    log, exact = waves(frequency)
    found = filtered(log, slider_and_hinge(), cutoff=10.0, order=order, trim=2.0)
    q, qd, qdd = (gain(frequency, 10.0, order) * x for x in at_times(found, exact))
    np.testing.assert_allclose(found.q, q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.tau, 3 * q, rtol=0, atol=1e-10)
    x = 2 * np.pi * frequency / RATE  # what differences of the eighth order lose
    np.testing.assert_allclose(found.qd, qd, rtol=0, atol=x**8 / 600 * abs(qd).max())
    np.testing.assert_allclose(
        found.qdd, qdd, rtol=0, atol=x**8 / 3000 * abs(qdd).max() + 1e-9
    )


def test_forces_stay_as_measured_on_request(rng):
    log, _ = waves(0.5, 1e-3, rng)
    options = dict(cutoff=10.0, trim=0.5, decimate=3)
    found = filtered(log, slider_and_hinge(), forces=False, **options)
    np.testing.assert_array_equal(found.tau, at_times(found, [log.tau])[0])
    other = filtered(log, slider_and_hinge(), **options)
    np.testing.assert_array_equal(found.qdd, other.qdd)
    assert np.abs(other.tau - found.tau).max() > 1e-3


def test_noise_is_reduced_as_the_filter_promises(rng):
    log, exact = waves(0.5, 1e-3, rng)
    found = filtered(log, slider_and_hinge(), cutoff=10.0)
    q, qd, _ = at_times(found, exact)
    f = np.linspace(0, RATE / 2, 10_001)[1:-1]
    kept = gain(f, 10.0)
    np.testing.assert_allclose(
        np.std(found.q - q), 1e-3 * np.sqrt(np.mean(kept**2)), rtol=0.1
    )
    rate = np.sqrt(np.mean((2 * np.pi * f * kept) ** 2))
    np.testing.assert_allclose(np.std(found.qd - qd), 1e-3 * rate, rtol=0.1)


def test_residuals_of_rows_that_are_kept_are_nearly_white(rng):
    log, exact = waves(0.5, 1e-3, rng)
    found = filtered(log, slider_and_hinge(), cutoff=10.0, decimate=10)
    error = found.q - at_times(found, exact)[0]
    assert len(found.ts) == 189  # from 0.29 s to 9.69 s, at 20 Hz
    for x in error.T:
        assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 0.2
    every = filtered(log, slider_and_hinge(), cutoff=10.0)
    x = (every.q - at_times(every, exact)[0])[:, 0]
    assert np.corrcoef(x[1:], x[:-1])[0, 1] > 0.9


def test_disturbance_at_an_end_is_gone_where_rows_are_kept():
    _, exact = waves()
    bump = np.zeros((len(TS), 2))
    bump[0] = 1.0
    model = slider_and_hinge()
    log = Log(TS, exact[0]), Log(TS, exact[0] + bump)
    a, b = (filtered(x, model, cutoff=5.0) for x in log)
    assert abs(a.q - b.q).max() < 0.001
    near = [filtered(x, model, cutoff=5.0, trim=0.05) for x in log]
    assert abs(near[0].q - near[1].q).max() > 0.05


def motion(t):
    """A configuration of `every_way` that moves smoothly in all coordinates."""
    a = jnp.sin(2.0 * t + jnp.arange(8.0))
    first = jnp.array([*a[:3], *a[1:4], 2.0])
    ball = jnp.array([a[4], 0.5 * a[5], a[6], -2.0])
    unit = [x / jnp.linalg.norm(x) for x in (first[3:], ball)]
    return jnp.concatenate([first[:3], *unit, a[6:]])


def test_rates_of_quaternions_are_those_of_tangent_steps():
    model = every_way()

    def rate(t):
        step = lambda s: jd.difference(model, motion(t), motion(s))  # noqa: E731
        return jax.jacfwd(step)(t)

    exact = jax.jit(jax.vmap(lambda t: (motion(t), rate(t), jax.jacfwd(rate)(t))))
    q, qd, qdd = map(np.asarray, exact(jnp.asarray(TS)))
    found = filtered(Log(TS, q), model, cutoff=40.0, trim=1.0)
    q, qd, qdd = at_times(found, (q, qd, qdd))
    np.testing.assert_allclose(found.q, q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.qd, qd, rtol=0, atol=3e-11)
    np.testing.assert_allclose(found.qdd, qdd, rtol=0, atol=3e-9)
    assert found.tau is None


def test_signs_of_quaternions_do_not_matter(rng):
    model = every_way()
    q = np.asarray(jax.jit(jax.vmap(motion))(jnp.asarray(TS)))
    turned = q.copy()
    for places in (slice(3, 7), slice(7, 11)):
        turned[:, places] *= rng.choice([-1.0, 1.0], len(TS))[:, None]
    a, b = (filtered(Log(TS, x), model, cutoff=20.0) for x in (q, turned))
    np.testing.assert_allclose(a.qd, b.qd, rtol=0, atol=1e-13)
    np.testing.assert_allclose(a.qdd, b.qdd, rtol=0, atol=1e-11)


def test_angles_that_jump_by_a_turn_are_continued():
    model = slider_and_hinge()
    q = np.stack([TS, 5 * TS], axis=1)  # the slider by 10 m, the hinge by 8 turns
    wrapped = q.copy()
    wrapped[:, 1] = (q[:, 1] + np.pi) % (2 * np.pi) - np.pi
    found = filtered(Log(TS, wrapped), model, cutoff=20.0)
    exact = np.tile([1.0, 5.0], (len(found.ts), 1))
    np.testing.assert_allclose(found.qd, exact, rtol=1e-7)


def test_uneven_times_are_interpolated_on_request(rng):
    model = slider_and_hinge()
    ts = np.sort(rng.choice(TS[1:-1], 1500, replace=False))
    q = np.stack([wave(ts)[0], wave(ts, 0.5)[0]], axis=1)
    with pytest.raises(ValueError, match=r"time step after row .* with rate=200\."):
        filtered(Log(ts, q), model, cutoff=20.0)
    found = filtered(Log(ts, q, tau=q), model, cutoff=20.0, rate=RATE, trim=0.5)
    qd = np.stack([wave(found.ts)[1], wave(found.ts, 0.5)[1]], axis=1)
    np.testing.assert_allclose(np.diff(found.ts), 1 / RATE, rtol=1e-9)
    np.testing.assert_allclose(found.qd, qd, rtol=0, atol=2e-3)
    np.testing.assert_allclose(found.tau, found.q, rtol=0, atol=1e-12)


def test_single_precision_stays():
    log, exact = waves()
    single = Log(*(np.float32(x) for x in (log.ts, log.q)))
    found = filtered(single, slider_and_hinge(np.float32), cutoff=10.0, trim=1.0)
    assert {x.dtype for x in jax.tree.leaves(found)} == {np.dtype("float32")}
    np.testing.assert_allclose(found.qd, at_times(found, exact)[1], atol=2e-5)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(cutoff=41.0), "cutoff is 41.0 Hz, expected above 0 and at most 40 Hz"),
        (dict(cutoff=0.0), "cutoff is 0.0 Hz, expected above 0"),
        (dict(cutoff=10.0, order=0), "order is 0, expected 1 or more"),
        (dict(cutoff=10.0, decimate=0), "decimate is 0, expected 1 or more"),
        (dict(cutoff=10.0, trim=-1.0), "trim is -1.0, expected seconds"),
        (dict(cutoff=10.0, rate=0.0), "rate is 0.0, expected samples a second"),
        (dict(cutoff=10.0, rate=0.05), "rate is 0.05, expected more than one sample"),
        (dict(cutoff=0.1), "has 2001 rows, expected more than 11492: 5746 are left"),
        (dict(cutoff=10.0, trim=5.01), "has 2001 rows, expected more than 2004"),
    ],
)
def test_wrong_settings_are_reported(options, message):
    with pytest.raises(ValueError, match=message):
        filtered(waves()[0], slider_and_hinge(), **options)


def test_log_that_is_not_finite_is_reported():
    log, exact = waves()
    q = exact[0].copy()
    q[7, 1] = np.nan
    with pytest.raises(ValueError, match="log, row 7: j_b.q is nan"):
        filtered(Log(TS, q), slider_and_hinge(), cutoff=10.0)
