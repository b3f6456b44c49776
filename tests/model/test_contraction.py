import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.model.tables import contract
from jaxdyn.program._jumps import jump_tables


def families(n):
    """Parents of trees of all shapes."""
    rng = np.random.default_rng(n)
    i = np.arange(n)
    own = [-1, *(int(rng.integers(0, k)) for k in range(1, n))]
    mostly = [k - 1 if rng.uniform() < 0.9 else own[k] for k in range(n)]
    return {
        "chain": i - 1,
        "random": np.array(own),
        "mostly a chain": np.array(mostly),
        "binary": (i - 1) // 2,
        "star": np.where(i > 0, 0, -1),
        "comb": np.where(i % 2 == 0, i - 2, i - 1).clip(-1),
        "long teeth": np.where(i % 33 == 0, i - 33, i - 1).clip(-1),
        "forest": np.where(i % 100 == 0, -1, i - 1),
    }


NAMES = list(families(2))


def depth(parents, chunk):
    """Dependent steps of forward dynamics: rotations and rates, inward, outward."""
    x, jumps = contract(parents, chunk), jump_tables(parents, min(chunk, 4))
    return 2 * jumps.depth + 2 * (x.length + x.rounds)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chunk", [1, 4, 32])
def test_every_row_is_joined_once_and_after_it_is_made(name, chunk):
    x = contract(families(300)[name], chunk)
    rows = x.pieces + 1 + x.left.size
    made = np.concatenate([np.full(x.pieces + 1, -1), np.repeat(*_rounds(x))])
    used = np.zeros(rows, int)
    for t in range(x.rounds):
        joined = np.concatenate([x.left[t], x.right[t], x.load[t]])
        assert (made[joined] < t).all()
        np.add.at(used, joined, 1)
    used[x.pieces] = 0  # the empty row
    is_result = np.concatenate([np.ones(x.pieces), (x.right != x.pieces).ravel()])
    roots = (families(300)[name] < 0).sum()
    assert used.max(initial=0) <= 1
    assert is_result.sum() - used.sum() == roots


def _rounds(x):
    return np.arange(x.rounds), x.left.shape[1]


@pytest.mark.parametrize("name", NAMES)
def test_pieces_are_connected_and_have_one_exit(name):
    parents = families(500)[name]
    x = contract(parents, 8)
    first = np.zeros(500, bool)
    first[x.first] = True
    piece = np.zeros(500, int)
    for i in range(500):
        piece[i] = np.searchsorted(x.first, i) if first[i] else piece[parents[i]]
    hung = parents[x.first]
    exits = x.exits[piece[hung[hung >= 0]]]
    np.testing.assert_array_equal(exits, hung[hung >= 0])


@pytest.mark.parametrize("name", NAMES)
def test_nodes_know_the_exit_beyond_them(name):
    parents = families(200)[name]
    x = contract(parents, 8)
    expected = np.full(200, x.pieces)
    for k, i in enumerate(x.exits):
        while i < 200:
            expected[i] = k
            i = 200 if i == x.first[k] else parents[i]
    np.testing.assert_array_equal(x.beyond, expected)
    hung = parents[x.first]
    exits = np.append(x.exits, -1)[x.jumps.parents]  # -1: on the base
    np.testing.assert_array_equal(exits, hung)


def test_a_chain_of_1024_is_110_steps_deep_at_most_and_45_if_wanted():
    chain = families(1024)["chain"]
    assert depth(chain, 32) <= 110
    assert depth(chain, 1) <= 45


@pytest.mark.parametrize("name", NAMES)
def test_depth_grows_by_the_logarithm(name):
    # a doubling adds a round to each of four passes, and up to three to the joins
    for chunk in (1, 32):
        deep = [depth(families(n)[name], chunk) for n in (512, 1024, 2048)]
        assert max(np.diff(deep)) <= 16, deep
        assert deep[1] <= (110 if chunk > 1 else 50), deep


def test_joints_are_not_cut():
    joints = ("spherical", "universal", "free")
    model = jd.robots.random_tree(0, 60, joints=joints, branching=0.2)
    x = model.topology.contraction(4)
    assert x.pieces > 20
    assert model.topology.steps.first[x.first].all()
    assert "joins in" in repr(x)
