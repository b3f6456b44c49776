from dataclasses import replace
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from experiments import long_chains
from experiments.parts import chain_claims, fifty_digits, timed_programs
from jaxdyn.analysis import Polynomial
from tests.reference import load, relative_error

LINE = {"denoc": {1: 100}, "articulated": {1: 102}, "newton_euler": {1: 50}}
CUBE = {m: {3: "1/6", 1: 60} for m in chain_claims.DENSE}


def measured(error=1e-7, short=2.0):
    """What could have been measured: denoc linear, the others quadratic in time."""
    cost = {"denoc": (1e-6, 1), "articulated": (1.1e-6, 1), "newton_euler": (5e-7, 1)}
    cost |= {m: (short / 6e6, 2) for m in chain_claims.DENSE}
    sizes = (6, 100, 1000)
    one = {(m, n): c * np.full(3, n**p) for m, (c, p) in cost.items() for n in sizes}
    double = {(m, n): error if m in chain_claims.DENSE else 1e-13 for m, n in one}
    conditions = {n: 1e3 * n**2 for n in sizes}
    return chain_claims.Measured(one, one, double, {}, conditions)


def findings(found, **operations):
    orders = {
        (m, kind): chain_claims.order(found.one, m, 100)
        for m, _ in found.one
        for kind in ("one state", "batch")
    }
    own = {m: Polynomial.of(p) for m, p in (LINE | CUBE | operations).items()}
    counts = {
        "DeNOC modules (proposed)": Polynomial.of({1: 100}),
        "Lilly & Orin": Polynomial.of({2: 20}),
    }
    verdicts = chain_claims.claims(found, orders, counts, own)
    return {v.claim: (v.finding, v.ours) for v in verdicts}


def test_every_method_is_measured_beside_denoc(config):
    for sizes in (config.one, config.many):
        assert all(set(n) <= set(sizes["denoc"]) for n in sizes.values())
    assert set(config.one) == set(long_chains.METHODS)


def test_fifty_digits_in_the_run_are_the_stored_ones():
    case = load("protein_chain")["cases"][0]
    state = case["states"][0]
    found = fifty_digits.chain_dynamics(jd.from_dict(case["model"]), state)
    np.testing.assert_array_equal(found.qdd_fd, state["qdd_fd"])
    np.testing.assert_array_equal(found.tau_id, state["tau_id"])
    np.testing.assert_array_equal(found.M[0], state["M_row_0"])


def test_fifty_digits_know_gravity_and_general_axes(rng):
    model = jd.robots.puma_560()
    state = dict(zip(("q", "qd", "qdd", "tau"), rng.normal(size=(4, 6)), strict=True))
    found = fifty_digits.chain_dynamics(model, state)
    q, qd, tau = (jnp.asarray(state[key]) for key in ("q", "qd", "tau"))
    qdd = jd.forward_dynamics(model, q, qd, tau)
    assert relative_error(qdd, found.qdd_fd) < 1e-12
    back = jd.inverse_dynamics(model, q, qd, jnp.asarray(state["qdd"]))
    assert relative_error(back, found.tau_id) < 1e-13


def test_a_short_chain_is_the_beginning_of_the_longest(config):
    case = long_chains.chain(load("protein_chain")["cases"], 4)
    assert case.model.nv == 4 and len(case.states) == 2
    methods = ("denoc", "newton_euler")
    made = timed_programs.programs(methods, case.model, case.states[0])
    assert max(long_chains.worst(p, case.states) for p in made) < 1e-14
    times = timed_programs.timed(made, turns=2, seconds=0.0)
    assert {key: x.shape for key, x in times.items()} == {
        ("denoc", 4): (2,),
        ("newton_euler", 4): (2,),
    }


def test_no_result_is_the_worst():
    program = SimpleNamespace(method="noc", at=lambda state: state["found"])
    states = [{"qdd_fd": [1.0], "found": np.array([x])} for x in (1.0, np.nan, 1.1)]
    assert np.isnan(long_chains.worst(program, states))
    assert long_chains.worst(program, states[::2]) == pytest.approx(0.1)


def test_the_order_is_the_slope_for_long_chains():
    times = {("denoc", n): np.full(3, max(n, 100) ** 2.0) for n in (10, 100, 300, 1000)}
    assert chain_claims.order(times, "denoc", 100) == pytest.approx(2)
    assert np.isnan(chain_claims.order(times, "denoc", 1000))


def test_printed_counts_of_forward_dynamics_are_four(config):
    counts = long_chains.in_print(config.published)
    assert [int(p(100)) for p in counts.values()][:2] == [26361, 32039]
    assert len(counts) == 4


def test_findings_follow_the_numbers():
    found = findings(measured())
    linear = [v for k, (v, _) in found.items() if k.startswith(("O(N)", "both"))]
    assert set(linear) == {"reproduced"}
    instability = next(k for k in found if "instability" in k)
    assert found[instability][0] == "reproduced in a different form"
    rope = next(k for k in found if "rope" in k)
    assert found[rope][0] == "not reproducible"
    assert "need 1.02 times the operations" in found[rope][1]
    fewer = next(k for k in found if "fewer" in k)
    assert "Lilly & Orin from n = 6 on" in found[fewer][1]
    assert findings(measured(error=1e-13))[instability][0] == "not reproducible"


@pytest.mark.parametrize(
    ("short", "composite", "finding"),
    [
        (0.5, {3: "1/6", 1: 60}, "reproduced"),
        (2.0, {3: "1/6", 1: 60}, "reproduced in a different form"),
        (0.5, {2: 2, 1: 60}, "not reproducible"),
        (0.5, {3: 2, 1: 20}, "not reproducible"),
        (0.5, {3: "1/6", 1: 99}, "not reproducible"),
    ],
    ids=["all", "not in time", "quadratic", "large coefficient", "more operations"],
)
def test_a_small_cubic_coefficient_is_a_matter_of_operations(short, composite, finding):
    found = findings(measured(short=short), composite=composite)
    cubic = next(k for k in found if k.startswith("O(N³)"))
    assert found[cubic][0] == finding


def test_order_n_is_a_matter_of_operations():
    assert findings(measured(), articulated={2: 1})["O(N)"][0] == "not reproducible"


@pytest.mark.slow
def test_our_operations_are_of_the_order_of_the_methods():
    own = long_chains.own_counts()
    orders = {m: chain_claims.degree(p) for m, p in own.items()}
    assert orders == dict.fromkeys(LINE, 1) | dict.fromkeys(CUBE, 3)


@pytest.mark.slow
def test_it_runs(config, tmp_path):
    one = {m: [6, 10, 100] for m in long_chains.METHODS}
    many = {m: one[m] for m in ("denoc", "articulated", "composite", "newton_euler")}
    single = {"denoc": [10]}
    short = replace(
        config, turns=2, seconds=0.0, order_from=10, one=one, many=many, single=single
    )
    report = long_chains.run(short, tmp_path)
    assert all((tmp_path / figure.file).is_file() for figure in report.figures)
    assert len(report.verdicts) == 9
