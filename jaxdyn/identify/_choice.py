"""Which parameters of a model are fitted, by name."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxdyn.identify import _elements as parts
from jaxdyn.identify._blocks import Block, block
from jaxdyn.identify._elements import CHOSEN, Element, Path, matching
from jaxdyn.model import Model

_PARTS: dict[Path, int] = {("mass",): 1, ("com",): 3, ("inertia",): 1}  # of a body


class Tie(eqx.Module):
    """Entries of a leaf that follow others, with their sign; leaves as if flat."""

    sign: Float[Array, " entries"]
    leaves: tuple[Path, Path] = eqx.field(static=True)  # that is followed, that follows
    source: tuple[int, ...] = eqx.field(static=True)  # entries of the first
    target: tuple[int, ...] = eqx.field(static=True)  # entries of the second

    def put(self, model: Model) -> Model:
        """The model in which the entries follow."""
        first, other = (parts.leaf_of(model, path) for path in self.leaves)
        new = first.ravel()[np.array(self.source)] * self.sign
        flat = other.ravel().at[np.array(self.target)].set(new)
        return parts.with_leaf(model, self.leaves[1], flat.reshape(other.shape))


class Parameters(eqx.Module):
    """Parameters of a model that are to be fitted; made by `choose`.

    Attributes:
        nominal: the model as it was given.
        theta: the coordinates where a search starts; zero is the nominal model.
        chosen: the elements that were chosen, in the order of the coordinates.
    """

    nominal: Model
    theta: Float[Array, " k"]
    blocks: tuple[Block, ...]
    ties: tuple[Tie, ...]
    chosen: tuple[Element, ...] = eqx.field(static=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the physical numbers in `values`."""
        return tuple(name for x in self.chosen for name in x.value_names)

    @property
    def bounds(self) -> Float[np.ndarray, "values 2"]:
        """Lower and upper bounds of what `values` are in physical models."""
        return np.array([ends for x in self.chosen for ends in x.bounds])

    def parts(self, theta: Float[Array, " k"]) -> list[Float[Array, "rows _"]]:
        """The coordinates of each block, a row for each of its elements."""
        if jnp.shape(theta) != self.theta.shape:
            raise ValueError(
                f"theta has shape {jnp.shape(theta)}, expected {self.theta.shape}, the "
                "coordinates of the chosen parameters."
            )
        ends = np.cumsum([len(x.at) * x.width for x in self.blocks])
        pieces = jnp.split(jnp.asarray(theta), ends[:-1])
        pairs = zip(pieces, self.blocks, strict=True)
        return [piece.reshape(len(x.at), x.width) for piece, x in pairs]

    def model(self, theta: Float[Array, " k"]) -> Model:
        """The model with these coordinates: physically possible for any numbers."""
        model = self.nominal
        for made, part in zip(self.blocks, self.parts(theta), strict=True):
            model = made.put(model, part)
        for tie in self.ties:
            model = tie.put(model)
        return model

    def values(self, theta: Float[Array, " k"]) -> Float[Array, " values"]:
        """The physical numbers, named by `names`; rotations as vectors from nominal."""
        return self._read(self.model(theta), theta)

    @property
    def nominal_values(self) -> Float[Array, " values"]:
        """Those of the nominal model, also zeros where numbers must be positive."""
        return self._read(self.nominal, jnp.zeros_like(self.theta))

    def _read(self, model: Model, theta: Float[Array, " k"]) -> Float[Array, " values"]:
        pairs = zip(self.blocks, self.parts(theta), strict=True)
        return jnp.concatenate([made.values(model, part) for made, part in pairs])

    def __repr__(self) -> str:
        names = ", ".join(x.name for x in self.chosen)
        return f"Parameters of model {self.nominal.name!r}: {names}"


def choose(
    model: Model,
    patterns: str | Sequence[str],
    *,
    without: str | Sequence[str] = (),
    tied: Sequence[Sequence[str]] = (),
    mirrored: Sequence[tuple[str, str, str]] = (),
    start: Mapping[str, float] | None = None,
) -> Parameters:
    """The parameters of a model that fit these names, with * and ? as wild cards.

    Names are those of bodies, joints, frames and loops with a leaf: "link3.mass",
    "link3.inertial" (mass, centre and inertia together), "*.friction", "tool.p_x",
    "gravity". What is fitted is described by coordinates in which every number is
    possible: log-Cholesky coordinates of pseudo-inertias, [Rucker], seen from the
    nominal body; logarithms of what is positive; rotation vectors.

    Args:
        without: patterns of what is left out of it.
        tied: names that have one value, as ("left.mass", "right.mass"): the first is
            fitted and the others follow.
        mirrored: triples of a name, another that follows as its image in a mirror, and
            the mirror's normal: ("left.inertial", "right.inertial", "y").
        start: numbers where the search for single parameters starts, by pattern; by
            default those of the model, and 0.1 for a positive one that is zero there.

    Raises:
        ValueError: a pattern fits nothing, a part of a whole body is left out, a body
            has no definite inertia, or a tie joins things of different kinds, or such
            as are tied already.
    """
    known = parts.elements(model)
    chosen = _chosen(known, patterns, without)
    followers, ties = _ties(known, chosen, tied, mirrored, model)
    chosen = [x for x in chosen if x not in followers]
    if not chosen:
        raise ValueError(f"patterns {patterns!r} without {without!r} leave nothing.")
    starts = _starts(chosen, start or {})
    grouped = sorted(chosen, key=lambda x: (x.kind, str(x.leaf)))
    groups = [list(x) for _, x in groupby(grouped, lambda x: (x.kind, x.leaf))]
    made = [block(model, group, starts) for group in groups]
    theta = np.concatenate([first.ravel() for _, first in made])
    return Parameters(
        nominal=model,
        theta=jnp.asarray(theta, model.dtype),
        blocks=tuple(x for x, _ in made),
        ties=ties,
        chosen=tuple(x for group in groups for x in group),
    )


def _chosen(
    known: list[Element], patterns: str | Sequence[str], without: str | Sequence[str]
) -> list[Element]:
    """The elements that patterns name, but for those left out and parts of others."""
    named = matching(known, "patterns", patterns)
    left_out = matching(named, "without", without, CHOSEN) if without else []
    chosen = [x for x in named if x not in left_out]
    whole = {x.at: x for x in chosen if x.kind == "body"}

    def body(x: Element) -> Element | None:  # of which it is a part, if chosen whole
        return whole.get(x.at // _PARTS[x.leaf]) if x.leaf in _PARTS else None

    for x in left_out:
        if (owner := body(x)) is not None:
            raise ValueError(
                f"without: {x.name} is a part of {owner.name}, which is chosen as a "
                "whole: name the parts of that body that shall be fitted instead."
            )
    return [x for x in chosen if body(x) is None]


def _starts(chosen: list[Element], start: Mapping[str, float]) -> dict[str, float]:
    """The start of each element; a later pattern wins."""
    fits = {p: matching(chosen, "start", p, CHOSEN) for p in start}
    return {x.name: float(start[p]) for p, found in fits.items() for x in found}


def _ties(
    known: list[Element],
    chosen: list[Element],
    tied: Sequence[Sequence[str]],
    mirrored: Sequence[tuple[str, str, str]],
    model: Model,
) -> tuple[set[Element], tuple[Tie, ...]]:
    """The elements that follow others, and how."""
    pairs = [(names[0], other, None) for names in tied for other in names[1:]]
    pairs += [(a, b, normal) for a, b, normal in mirrored]
    joined: list[tuple[Element, Element]] = []
    entries: dict[tuple[Path, Path], list[tuple[int, int, float]]] = {}
    for first, other, normal in pairs:
        what = "tied" if normal is None else "mirrored"
        found = _tied_pairs(known, chosen, what, first, other)
        joined += found
        for a, b in found:
            signs = [1.0] * len(a.entries) if normal is None else _signs(a, normal)
            ends = zip(a.entries, b.entries, signs, strict=True)
            for (leaf, i), (other_leaf, j), sign in ends:
                entries.setdefault((leaf, other_leaf), []).append((i, j, sign))
    _check_followers(joined, chosen)
    made = []
    for leaves, rows in entries.items():
        source, target, sign = zip(*rows, strict=True)
        made.append(Tie(jnp.asarray(sign, model.dtype), leaves, source, target))
    return {b for _, b in joined}, tuple(made)


def _tied_pairs(
    known: list[Element], chosen: list[Element], what: str, first: str, other: str
) -> list[tuple[Element, Element]]:
    """The elements of two patterns, each with the one that follows it."""
    sources, targets = (matching(known, what, x) for x in (first, other))
    # the name of the leaf alone: each loop has leaves of its own
    kinds = [[(x.kind, x.leaf[-1:]) for x in some] for some in (sources, targets)]
    if kinds[0] != kinds[1] or set(sources) & set(targets):
        names = [", ".join(x.name for x in some) for some in (sources, targets)]
        raise ValueError(
            f"{what}: {first!r} names {names[0]} and {other!r} names {names[1]}, "
            "expected as many others of the same kinds."
        )
    names = {x.name for x in chosen}
    for x in sources:
        if x.name not in names:
            raise ValueError(
                f"{what}: {x.name} is not among the chosen parameters "
                f"({', '.join(sorted(names))}): add it to patterns, or name one that "
                "is there first; of a body that is chosen as a whole tie the whole."
            )
    return list(zip(sources, targets, strict=True))


def _check_followers(
    pairs: list[tuple[Element, Element]], chosen: list[Element]
) -> None:
    """What follows must follow one other, which is fitted, and not be fitted itself."""
    followed: dict[tuple[Path, int], str] = {}
    for _, b in pairs:
        if not followed.keys().isdisjoint(b.entries):
            raise ValueError(
                f"tied, mirrored: {b.name} follows more than one other, expected one."
            )
        followed |= dict.fromkeys(b.entries, b.name)
    followers = {b for _, b in pairs}
    sources = [(a, "is followed") for a, _ in pairs]
    fitted = [(x, "is fitted") for x in chosen if x not in followers]
    for x, what in sources + fitted:
        for entry in x.entries:
            if entry in followed:
                raise ValueError(
                    f"tied, mirrored: {x.name} {what}, and {followed[entry]} follows "
                    "another: expected one that is fitted first, then all that follow "
                    "it, as ('a.mass', 'b.mass', 'c.mass')."
                )


def _signs(element: Element, normal: str) -> list[float]:
    """The signs of the entries of an element's image in a mirror."""
    if normal not in ("x", "y", "z") or element.kind == "axis":
        raise ValueError(
            f"mirrored: {element.name} with the normal {normal!r}, expected 'x', 'y' "
            "or 'z', and no axis."
        )
    s = np.where(np.arange(3) == "xyz".index(normal), -1.0, 1.0)
    matrix = np.outer(s, s).ravel()
    if element.kind == "body":
        return [1.0, *s, *matrix]
    if element.kind in ("inertia", "rotation"):
        return list(matrix)
    is_vector = element.kind == "free" and element.name.endswith(("_x", "_y", "_z"))
    return [s["xyz".index(element.name[-1])] if is_vector else 1.0]
