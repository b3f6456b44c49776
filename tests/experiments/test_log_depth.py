from dataclasses import replace

import numpy as np
import pytest

import jaxdyn as jd
from experiments import log_depth
from experiments.parts import fifty_digits, hard_chains, parallel_programs, tree_shapes
from jaxdyn.analysis import Polynomial
from tests.reference import DATA, load, relative_error

SIZES = (16, 64, 256)


def depths(**others):
    """What the schedules could give: steps that grow by 4 for each doubling."""
    steps = {n: 2 + 4 * int(np.log2(n)) for n in SIZES}
    found = {
        (shape, n): tree_shapes.Steps(3 * n, 60 + steps[n], steps[n])
        for shape in tree_shapes.SHAPES
        for n in SIZES
    }
    return found | {("chain", n): others["chain"](n) for n in SIZES if others}


@pytest.mark.parametrize("shape", tree_shapes.SHAPES)
def test_a_shape_has_its_bodies_after_their_parents(shape):
    parents = list(tree_shapes.SHAPES[shape](16))
    assert len(parents) == 16 and all(-1 <= p < i for i, p in enumerate(parents))


def test_the_depth_of_a_tree_is_its_own():
    depth = {s: tree_shapes.tree(f(32)).topology.depth for s, f in _regular().items()}
    assert depth == {"chain": 32, "comb": 17, "star": 1, "binary tree": 6}


def _regular():
    return {s: f for s, f in tree_shapes.SHAPES.items() if s != "random tree"}


def test_steps_of_a_chain_grow_by_a_constant_for_each_doubling():
    found = [tree_shapes.steps("chain", n) for n in (16, 32, 64)]
    assert [x.sequential for x in found] == [48, 96, 192]
    assert np.ptp(np.diff([x.least for x in found])) == 0


@pytest.mark.parametrize("shape", tree_shapes.SHAPES)
def test_the_table_in_the_docs_has_these_steps(shape):
    page = (DATA.parents[1] / "docs" / "experiments.md").read_text(encoding="utf-8")
    found = [tree_shapes.steps(shape, n) for n in SIZES[:2]]
    for method, key in (("denoc", "sequential"), ("parallel", "parallel")):
        first, second = (getattr(x, key) for x in found)
        assert f"| {shape} | {method} | {first} | {second} |" in page


def test_the_verdict_follows_the_steps():
    assert log_depth.verdict(depths()).finding == "reproduced"
    line = depths(chain=lambda n: tree_shapes.Steps(3 * n, n, n))
    assert log_depth.verdict(line).finding == "not reproducible"


def test_the_summary_says_the_ratios_of_the_run():
    cost = {"denoc": 2.0, "parallel": 3.0}
    cost |= {"gradient, denoc": 4.0, "gradient, parallel": 3.0}
    seconds = {(name, 8): np.full(3, x) for name, x in cost.items()}
    measured = log_depth.Measured(seconds, {}, Polynomial.of({1: 1}), {}, {}, {})
    said = log_depth.summary(measured)
    assert "one state 1.50 (n = 8)" in said and "gradient 0.75 (n = 8)" in said


def test_articulated_bodies_with_sixty_digits_give_the_stored_values():
    case = load("protein_chain")["cases"][0]
    model, state = jd.from_dict(case["model"]), case["states"][0]
    given = (state[key] for key in ("q", "qd", "tau"))
    found = fifty_digits.chain_accelerations(model, *given)
    # the stored ones take rotations as they are, not the nearest exact ones
    assert relative_error(found, state["qdd_fd"]) < 5e-14


def test_hard_chains_are_seven_with_states_that_fit():
    chains = hard_chains.hard_chains(8)
    assert len(chains) == 7
    for model, q, qd, tau in chains.values():
        assert q.shape == qd.shape == tau.shape == (model.nv,) == (8,)
    groups = parallel_programs.alike(chains)
    assert [len(group) for group in groups] == [4, 1, 2]
    for group in groups:
        assert len({model.topology for model, *_ in group.values()}) == 1


@pytest.mark.slow
def test_denoc_is_exact_on_short_hard_chains():
    for group in parallel_programs.alike(hard_chains.hard_chains(6)):
        found = parallel_programs.errors(["denoc"], list(group.values()))
        assert max(found["denoc"]) < 1e-12


@pytest.mark.slow
def test_a_gradient_is_that_of_the_sum(rng):
    model, *state = hard_chains.helix(4, rng)
    gradient = parallel_programs.function_of("gradient, denoc")(model, *state)
    M = np.asarray(jd.mass_matrix(model, np.asarray(state[0])))
    np.testing.assert_allclose(gradient[2], np.linalg.inv(M).sum(axis=0), rtol=1e-9)


def test_methods_in_the_settings_are_known(config):
    assert set(config.work) <= set(parallel_programs.METHODS)
    for name in config.times:
        parallel_programs.function_of(name)
        beside = "gradient, denoc" if name.startswith("gradient") else "denoc"
        assert set(config.times[name]) <= set(config.times[beside])


@pytest.mark.slow
def test_it_runs(config, tmp_path):
    short = replace(
        config,
        bodies=[16, 64],
        turns=2,
        seconds=0.0,
        hard=8,
        work={"parallel": [8]},
        times={name: [8] for name in config.times},
        errors={"float32": [100]},
        hard_precisions=["float32"],
    )
    report = log_depth.run(short, tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {x.file for x in report.figures}
    assert len(report.verdicts) == 1 and len(report.tables) == 5
