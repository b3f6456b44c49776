"""What a reader finds in a file: what it skips and repairs, and what is wrong."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from jaxdyn.model import Note

T = TypeVar("T")
_SHOWN = 3  # names in the place of a note


class Findings:
    """Notes, counted by kind, and problems, which are raised together.

    Attributes:
        strict: whether what could be repaired is a problem.
    """

    def __init__(self, skip: Iterable[str], strict: bool):
        self.strict = strict
        self._skip = {skip} if isinstance(skip, str) else set(skip)
        self._places = dict.fromkeys(("joint/mimic", "robot/gazebo"))  # in this order
        self._notes: dict[tuple[str, str, bool], list[str]] = {}
        self._problems: list[str] = []

    def note(
        self, element: str, place: str, became: str, changes_motion: bool = False
    ) -> None:
        """Note what became of an element."""
        self._notes.setdefault((element, became, changes_motion), []).append(place)

    def wrong(self, problem: str) -> None:
        """Remember what makes the file unreadable."""
        self._problems.append(problem)

    def repaired(self, problem: str, *note: Any) -> None:
        """Note a repair, which is a problem if the reader is strict."""
        self.wrong(problem) if self.strict else self.note(*note)

    def left(self, problem: str, element: str, name: str, *note: Any) -> None:
        """Note what is left out: a repair, unless the user wants it to be skipped."""
        if self.skips(element, name):
            self.note(element, name, *note)
        else:
            self.repaired(problem, element, name, *note)

    def skips(self, element: str, name: str) -> bool:
        """Whether the user wants an element to be skipped, everywhere or here."""
        places = (element, f"{element}/{name}")
        self._places |= dict.fromkeys(places)
        return not self._skip.isdisjoint(places)

    def tried(self, read: Callable[..., T], *args: object) -> T | None:
        """What a function returns; an error that it raises is a problem."""
        try:
            return read(*args)
        except ValueError as error:
            self.wrong(str(error))
            return None

    def raise_problems(self) -> None:
        """Raise a `ValueError` with all problems."""
        unknown = self._skip - set(self._places)
        if unknown:
            self.wrong(
                f"skip has {', '.join(map(repr, sorted(unknown)))}, expected some of: "
                f"{', '.join(self._places)}."
            )
        if len(self._problems) > 1:
            lines = "\n  ".join(self._problems)
            raise ValueError(f"{len(self._problems)} problems:\n  {lines}")
        if self._problems:
            raise ValueError(self._problems[0])

    @property
    def notes(self) -> list[Note]:
        """The notes, one for all elements of a kind with the same fate."""
        notes = []
        for (element, became, changes), places in self._notes.items():
            few = len(places) <= _SHOWN
            place = ", ".join(places) if few else f"{len(places)} in all"
            notes.append(Note(element, place, became, changes))
        return notes
