"""Operations that a function needs, counted on its traced program."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxdyn.analysis._interpreter import Interpreter, Symbols
from jaxdyn.analysis._scalars import FUNCTIONS


@dataclass(frozen=True)
class OperationCount:
    """How many scalar operations the results of a function need.

    Attributes:
        multiplications: products, of two unknowns or of an unknown and a constant.
        divisions: quotients whose divisor is not a constant.
        additions: sums and differences.
        trigonometric: sines, cosines and their kin.
        functions: square roots, exponentials and their kin.
        choices: comparisons, absolute values, selections.
    """

    multiplications: int = 0
    divisions: int = 0
    additions: int = 0
    trigonometric: int = 0
    functions: int = 0
    choices: int = 0

    @property
    def M(self) -> int:
        """Multiplications and divisions together, as the papers count them."""
        return self.multiplications + self.divisions

    @property
    def A(self) -> int:
        """Additions and subtractions."""
        return self.additions

    def __str__(self) -> str:
        return f"{self.M}M {self.A}A {self.trigonometric}T"


def count_operations(f: Callable, model: Any, *arrays: Any) -> OperationCount:
    """The operations that `f(model, *arrays)` needs for one state.

    The leaves of `model` are constants: what depends on them alone is computed off line
    and is free. The entries of `arrays` are unknowns. The program is run on scalars,
    loops step by step, so that a zero (such as the velocity of the base, or what the
    children of the last link hand on) is known wherever it arrives. Then

    - x 0, x 1, x (-1), x + 0 and changes of sign are free, and so is moving data;
    - an expression that occurs twice is counted once, up to its sign;
    - what no result needs is not counted;
    - x + x is an addition, and a product with any constant other than 0, 1 and -1 (also
      2 or 1/2) is a multiplication, as is the division by a constant;
    - expressions are counted as they are written: nothing is rearranged.

    A leaf of the model that is exactly zero is a zero of the count, and so are
    constants that cancel but for rounding: a robot without special values gives the
    count of its kind, a PUMA its own.

    Args:
        f: a function of a pytree and arrays, such as `jaxdyn.dynamics.mass_matrix`.

    Raises:
        ValueError: if the program holds a primitive without a rule, or a branch that
            depends on the state.
    """
    program, interpreter = jax.make_jaxpr(f)(model, *arrays), Interpreter()
    known = [np.asarray(leaf) for leaf in jax.tree.leaves(model)]
    unknown = [_unknowns(interpreter, leaf) for leaf in jax.tree.leaves(arrays)]
    results = interpreter.run(program, [*known, *unknown])
    ids = [r.ids.ravel().tolist() for r in results if isinstance(r, Symbols)]
    return _summed(interpreter.scalars.tally(sum(ids, [])))


def _unknowns(interpreter: Interpreter, array: Any) -> Symbols:
    ids = [interpreter.scalars.variable() for _ in range(np.size(array))]
    return Symbols(np.array(ids, np.int64).reshape(np.shape(array)))


def _summed(tally: Any) -> OperationCount:
    kinds = {"mul": "multiplications", "div": "divisions", "add": "additions"}
    kinds |= FUNCTIONS
    totals = Counter()
    for name in tally.keys() & kinds.keys():
        totals[kinds[name]] += tally[name]
    return OperationCount(**totals)
