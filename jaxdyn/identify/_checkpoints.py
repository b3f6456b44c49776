"""States of long searches on disk: complete or not there at all."""

import hashlib
import inspect
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

_KEPT = 2  # the last one, and one more
_ADDRESS = re.compile(" at 0x[0-9a-f]+")


class Checkpoints:
    """A folder with the last states of one search, by orbax.

    Attributes:
        folder: where they are; it is made if it is not there.
        problem: a digest of what is searched, so that no other search goes on here.
    """

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
        """Whether the folder is new, or belongs to this search.

        Raises:
            ValueError: it has something else.
        """
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
        draft = note.with_suffix(".new")
        draft.write_text(json.dumps(self.problem), encoding="utf-8")
        draft.replace(note)

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


def digest(*parts: Any) -> str:
    """A number for all that some pytrees hold, the same in every run.

    Functions count by their code and by what they have kept, such as the rate of an
    optimiser, but not by what they call.
    """
    sum_ = hashlib.sha256()
    for text in _told(parts, set()):
        sum_.update(text)
    return sum_.hexdigest()


def _told(x: Any, seen: set[int]) -> Iterator[bytes]:
    """All that a pytree holds, in bytes: its structure, then its leaves."""
    leaves, structure = jax.tree.flatten(x)
    yield _ADDRESS.sub("", str(structure)).encode()
    for leaf in leaves:
        function = inspect.unwrap(leaf.func if isinstance(leaf, partial) else leaf)
        if eqx.is_array_like(leaf):
            array = np.asarray(leaf)
            yield f"{array.dtype}{array.shape}".encode() + array.tobytes()
        elif isinstance(function, FunctionType):
            if id(leaf) in seen:
                continue
            seen.add(id(leaf))
            yield function.__qualname__.encode()
            yield from _code(function.__code__)
            given = (leaf.args, leaf.keywords) if isinstance(leaf, partial) else ()
            kept = _kept(function), function.__defaults__
            yield from _told((kept, given), seen)
        else:
            yield _ADDRESS.sub("", repr(leaf)).encode()


def _code(code: CodeType) -> Iterator[bytes]:
    """What a function does, with its constants and the names it asks for."""
    yield code.co_code + repr(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:  # the order of a set differs from run to run
            is_set = isinstance(constant, frozenset)
            yield repr(sorted(map(repr, constant)) if is_set else constant).encode()


def _kept(function: FunctionType) -> list[Any]:
    """What a function has kept of where it was made, as far as that is there yet."""
    kept = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            kept.append(cell.cell_contents)
    return kept
