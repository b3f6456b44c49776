from itertools import pairwise

import numpy as np
import pytest

from jaxdyn.model import Topology


def tree(parents):
    """A topology of revolute bodies 1, 2, ...: one elementary step per body."""
    n = len(parents)
    names = tuple(str(i + 1) for i in range(n))
    joints = ("revolute",) * n
    return Topology("tree", "base", names, names, tuple(parents), joints)


def random_parents(seed, n=60):
    rng = np.random.default_rng(seed)
    return [int(rng.integers(-1, i)) if i else -1 for i in range(n)]


def comb(teeth):
    """A spine 0, 2, 4, ... with one tooth on each of its bodies."""
    return [p for i in range(teeth) for p in (2 * (i - 1) if i else -1, 2 * i)]


TREES = {
    "one body": [-1],
    "chain": range(-1, 99),
    "star": [-1] + [0] * 30,
    "comb": comb(40),
    "binary": [(i - 1) // 2 if i else -1 for i in range(127)],
    "forest of single bodies": [-1] * 20,
    "forest of chains": [-1, -1, -1, 0, 1, 2, 3, 4, 5, 6],
    "gripper": [-1, 0, 1, 0],
    "not depth first": [-1, -1, 0, 1, 1, 2, 2, 3, 4, 5, 7],
    **{f"random {seed}": random_parents(seed) for seed in range(5)},
}
every_tree = pytest.mark.parametrize("parents", TREES.values(), ids=TREES)


def lanes_of(level, size):
    return [column[column < size] for column in level.index.T]


@pytest.mark.parametrize(
    "parents, bodies, module_parents",
    [
        ([-1, 0, 1, 0], (("1",), ("2", "3"), ("4",)), (-1, 0, 0)),
        ([-1, 0, 0, 1], (("1",), ("2", "4"), ("3",)), (-1, 0, 0)),
        ([-1, 0, 1], (("1", "2", "3"),), (-1,)),
        ([-1, -1, 0], (("1", "3"), ("2",)), (-1, -1)),
        ([-1, 0, 0, 1, 1], (("1",), ("2",), ("3",), ("4",), ("5",)), (-1, 0, 0, 1, 1)),
    ],
    ids=["gripper", "not depth first", "chain", "forest", "two branchings"],
)
def test_modules_are_the_serial_pieces(parents, bodies, module_parents):
    modules = tree(parents).modules
    assert (modules.bodies, modules.parents) == (bodies, module_parents)


@every_tree
def test_modules_share_out_the_bodies(parents):
    t = tree(parents)
    shared = [name for names in t.modules.bodies for name in names]
    assert sorted(shared) == sorted(t.names)


@every_tree
def test_children_of_a_module_start_at_its_last_body(parents):
    t = tree(parents)
    first = [t.parents[t.names.index(names[0])] for names in t.modules.bodies]
    last = [t.names.index(names[-1]) for names in t.modules.bodies]
    assert first == [last[p] if p >= 0 else -1 for p in t.modules.parents]


def test_length_of_modules_is_their_number():
    assert len(tree([-1, 0, 1, 0]).modules) == 3


def test_modules_are_printed_one_per_line():
    text = "M1 (from base): 1\nM2 (from M1): 2, 3\nM3 (from M1): 4"
    assert repr(tree([-1, 0, 1, 0]).modules) == text


@every_tree
def test_every_node_is_in_exactly_one_place(parents):
    lanes = tree(parents).lanes
    nodes = [i for level in lanes.levels for i in level.index.flat if i < lanes.size]
    assert sorted(nodes) == list(range(len(parents)))


@every_tree
def test_a_lane_is_a_path(parents):
    t = tree(parents)
    paths = [p for level in t.lanes.levels for p in lanes_of(level, t.lanes.size)]
    links = [(i, t.parents[j]) for path in paths for i, j in pairwise(path)]
    assert all(i == parent for i, parent in links)


@every_tree
def test_lanes_are_padded_at_their_ends_only(parents):
    lanes = tree(parents).lanes
    filled = [level.index < lanes.size for level in lanes.levels]
    assert not any((x[1:] & ~x[:-1]).any() for x in filled)


@every_tree
def test_the_first_level_hangs_on_the_world(parents):
    t = tree(parents)
    first = t.lanes.levels[0]
    roots = [i for i, p in enumerate(t.parents) if p < 0]
    assert (first.attached, list(first.index[0])) == (None, roots)


@every_tree
def test_heads_hang_on_their_parents_place_in_the_level_before(parents):
    t = tree(parents)
    pairs = list(pairwise(t.lanes.levels))
    hang = [before.index.ravel()[level.attached].tolist() for before, level in pairs]
    assert hang == [[t.parents[i] for i in level.index[0]] for _, level in pairs]


@every_tree
def test_levels_are_at_most_one_and_the_binary_logarithm(parents):
    assert len(tree(parents).lanes.levels) <= 1 + np.log2(len(parents))


@every_tree
def test_place_inverts_the_concatenated_levels(parents):
    lanes = tree(parents).lanes
    flat = np.concatenate([level.index.ravel() for level in lanes.levels])
    np.testing.assert_array_equal(flat[lanes.place], np.arange(lanes.size))


@pytest.mark.parametrize("name, shape", [("chain", (100, 1)), ("comb", (41, 1))])
def test_the_first_lane_follows_the_largest_subtrees(name, shape):
    assert tree(TREES[name]).lanes.levels[0].index.shape == shape
