"""Outward and inward walks over a tree: the only code that follows its branches.

Data come and go in *laned* form: a tuple over the levels of the tree, each a pytree
with leaves [length, lanes, ...]. A walk is one `lax.scan` per level; a step function
sees one link at a time.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdyn.program._gather import put, take
from jaxdyn.program._lanes import Lanes, Level

T = TypeVar("T")  # a pytree
X = TypeVar("X")
Own = TypeVar("Own")
Kept = TypeVar("Kept")
Laned: TypeAlias = tuple[T, ...]


def outward(
    lanes: Lanes,
    step: Callable[[Own, X], tuple[Own, Kept]],
    root: Own,
    links: Laned[X],
    each: bool = False,
) -> Laned[Kept]:
    """Walks from the base to the tips.

    `step(parent, link) -> (own, kept)` receives what its parent passed on as `own`,
    which for the first links is `root`; if `each`, that has a row for each of them.
    Returns all `kept`, in laned form.
    """
    results, passed = [], None
    for level, xs in zip(lanes.levels, links, strict=True):
        if level.attached is None:
            start = root if each else _repeat(root, level)
        else:
            start = take(_flat(passed), level.attached)
        has_branches = level is not lanes.levels[-1]

        def row(parent, link, has_branches=has_branches):
            own, kept = jax.vmap(step)(parent, link)
            return own, (own if has_branches else None, kept)

        _, (passed, kept) = lax.scan(row, start, xs)
        results.append(kept)
    return tuple(results)


def inward(
    lanes: Lanes, step: Callable[[Own, X], tuple[Own, Kept]], tip: Own, links: Laned[X]
) -> tuple[Own, Laned[Kept]]:
    """Walks from the tips to the base.

    `step(children, link) -> (own, kept)` receives the sum of what its children handed
    on as `own`, which for a link without children is `tip` (a zero). Returns what
    arrives at the base, a row for each lane of the first level, and all `kept`, in
    laned form.
    """

    def row(children, x):
        link, branches = x
        if branches is not None:
            children = jax.tree.map(jnp.add, children, branches)
        return jax.vmap(step)(children, link)

    results, below, handed = [], None, tip
    for level, xs in zip(reversed(lanes.levels), reversed(links), strict=True):
        branches = None if below is None else _attach(handed, below, level)
        handed, kept = lax.scan(row, _repeat(tip, level), (xs, branches), reverse=True)
        results.append(kept)
        below = level
    return handed, tuple(reversed(results))


def lane_sums(lanes: Lanes, laned: Laned[T]) -> T:
    """For each lane of the first level the sum over all links that it carries."""
    below, total = None, laned[-1]
    for level, xs in zip(reversed(lanes.levels), reversed(laned), strict=True):
        own = jax.tree.map(lambda x: x.sum(axis=0), xs)
        if below is not None:
            width = level.index.shape[1]
            branches = put(total, np.asarray(below.attached) % width, width)
            own = jax.tree.map(jnp.add, own, branches)
        total, below = own, level
    return total


def spread(lanes: Lanes, tree: T) -> Laned[T]:
    """Per-step data with leading axis [steps] in laned form; padding is zero."""
    return tuple(take(tree, level.index) for level in lanes.levels)


def collect(lanes: Lanes, laned: Laned[T], steps: np.ndarray | None = None) -> T:
    """Laned data as arrays with leading axis [steps], for some steps or for all."""

    def join(first, *others):
        return jnp.concatenate([first, *others]) if others else first

    place = lanes.place if steps is None else lanes.place[steps]
    return take(jax.tree.map(join, *map(_flat, laned)), place)


def from_parents(parents: np.ndarray, tree: T, root: T) -> T:
    """For each node the value of its parent, or `root` for those on the world."""

    def with_root(x, r):
        return jnp.concatenate([jnp.broadcast_to(r, (1, *x.shape[1:])), x])

    return take(jax.tree.map(with_root, tree, root), parents + 1)


def _repeat(tree: T, level: Level) -> T:
    """The same value for every lane of a level."""
    lanes = level.index.shape[1]
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (lanes, *jnp.shape(x))), tree)


def _attach(handed: T, below: Level, level: Level) -> T:
    """What the lanes below hand to their places in a level, summed; zero elsewhere."""
    places = put(handed, np.asarray(below.attached), level.index.size)
    return jax.tree.map(lambda x: x.reshape((*level.index.shape, *x.shape[1:])), places)


def _flat(laned: T) -> T:
    """Leaves [length, lanes, ...] as [length * lanes, ...]."""

    def join(x):  # without a copy under `vmap` if there is one lane
        if x.shape[1] == 1:
            return x[:, 0]
        return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))

    return jax.tree.map(join, laned)
