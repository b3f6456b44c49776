"""Long searches, and their states on disk: complete or not there at all."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxdyn.identify._problem import Problem, Unknowns
from jaxdyn.io import new_file

Progress = Callable[[int, float], None]  # steps since the last call, loss
_KEPT = 2  # the last one, and one more
_ADDRESS = re.compile(" at 0x[0-9a-f]+")


class Checkpoints:
    """A folder with the last states of the search of which `problem` is the digest."""

    def __init__(self, folder: str | os.PathLike[str], problem: str) -> None:
        import orbax.checkpoint as ocp  # it takes a second, which few need

        self.folder = Path(folder).resolve()
        self.problem = problem
        self._args = ocp.args
        self._check()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=_KEPT, enable_async_checkpointing=False
        )
        self._manager = ocp.CheckpointManager(self.folder / "states", options=options)

    def _check(self) -> None:
        """Raise a `ValueError` unless the folder is new, or belongs to this search."""
        note = self.folder / "problem.json"
        if note.exists():
            if json.loads(note.read_text(encoding="utf-8")) != self.problem:
                raise ValueError(
                    f"checkpoint: {self.folder} has the states of another fit: choose "
                    "another folder, or remove it."
                )
            return
        if self.folder.exists() and any(self.folder.iterdir()):
            raise ValueError(
                f"checkpoint: {self.folder} is not empty and has no states of a fit: "
                "choose another folder."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        with new_file(note) as draft:
            draft.write_text(json.dumps(self.problem), encoding="utf-8")

    def load(self, state: Any) -> Any:
        """The last state that was saved, of the same structure; or the given one."""
        last = self._manager.latest_step()
        if last is None:
            return state
        arrays, rest = eqx.partition(state, eqx.is_array)
        leaves, structure = jax.tree.flatten(arrays)
        kind = self._args.StandardRestore(_named(leaves))
        saved = self._manager.restore(last, args=kind)
        found = [jnp.asarray(saved.get(str(k), x)) for k, x in enumerate(leaves)]
        return eqx.combine(jax.tree.unflatten(structure, found), rest)

    def save(self, step: int, state: Any) -> None:
        """Saves the arrays of a state; older ones are removed when it is complete."""
        leaves = jax.tree.leaves(eqx.filter(state, eqx.is_array))
        kind = self._args.StandardSave(_named(leaves))
        self._manager.save(step, args=kind, force=True)
        self._manager.wait_until_finished()

    def close(self) -> None:
        """Ends the work with the folder."""
        self._manager.close()

    def remove(self) -> None:
        """Removes the folder."""
        self.close()
        shutil.rmtree(self.folder)


def _named(leaves: list[Any]) -> dict[str, np.ndarray]:
    """Arrays by number; orbax takes none without entries."""
    return {str(k): np.asarray(x) for k, x in enumerate(leaves) if np.size(x)}


class Found(eqx.Module):
    """What a search found."""

    x: Unknowns
    losses: Float[np.ndarray, " steps"]  # at the start of each step
    validations: Float[np.ndarray, " looks"]  # held-out residuals between steps
    message: str = eqx.field(static=True)  # how it ended, in words
    converged: bool = eqx.field(static=True)  # whether nothing more was to gain
    failed: bool = eqx.field(static=True)  # whether something was not finite


def search(
    solver: Any, problem: Problem, held: Any, saved: Checkpoints | None, tell: Progress
) -> Found:
    """What a solver finds, in pieces of `every` steps; states are saved in between."""
    state = solver.start(problem, held)
    state = state if saved is None else saved.load(state)
    while not solver.is_over(state):
        before = int(state.k)
        state = solver.advance(problem, held, state)
        if saved is not None:
            saved.save(int(state.k), state)
        tell(int(state.k) - before, float(state.losses[int(state.k) - 1]))
    k, settled = int(state.k), solver.is_settled(state)
    looks = 0 if held is None else int(state.looks)
    failed = not np.isfinite(state.losses[k - 1])
    return Found(
        x=solver.best(state),
        losses=np.asarray(state.losses[:k]),
        validations=np.asarray(state.validations[:looks]),
        message=_ending(failed, settled, k),
        converged=settled and not failed,
        failed=failed,
    )


def digest(solver: Any, problem: Problem, held: Any) -> str:
    """A number for all that decides a search: its settings, its program, its numbers.

    The program has all that functions do, such as the schedule of an optimiser.
    """
    given = solver, problem, held, solver.start(problem, held)
    program = type(solver).advance.lower(*given).as_text()
    arrays, structure = jax.tree.flatten(eqx.filter(given, eqx.is_array))
    sum_ = hashlib.sha256(_ADDRESS.sub("", f"{structure}{program}").encode())
    for array in arrays:
        sum_.update(np.asarray(array).tobytes())
    return sum_.hexdigest()


def _ending(failed: bool, settled: bool, steps: int) -> str:
    if failed:
        return (
            f"The loss is not finite after {steps} steps: look for data that the model "
            "cannot follow, or take smaller steps or another start."
        )
    if settled:
        return f"Nothing more is to be gained after {steps} steps."
    return f"All {steps} steps are used."
