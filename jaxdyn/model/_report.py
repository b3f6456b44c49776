"""What a reader made of a file: what it left out, repaired or kept as data."""

from dataclasses import dataclass

UNRESISTED = "no inertia resists"  # how a note on such joints begins


@dataclass(frozen=True)
class Note:
    """What became of an element of a file, or of all elements of a kind.

    Attributes:
        element: its kind, in the language of the file, such as "tendon".
        place: its name in the file, or how many there are.
        became: what the model has in its place.
        changes_motion: whether the model moves differently for it, while nothing is in
            contact and no joint is at a limit.
    """

    element: str
    place: str
    became: str
    changes_motion: bool = False


class Notes(tuple[Note, ...]):
    """The notes on one file; they print as a table."""

    __slots__ = ()

    @property
    def changing_motion(self) -> "Notes":
        """The notes on what changes the motion."""
        return Notes(note for note in self if note.changes_motion)

    def __str__(self) -> str:
        if not self:
            return "nothing to report"
        head = ("element", "place", "motion", "became")
        motion = {True: "changed", False: "same"}
        rows = [head] + [
            (x.element, x.place, motion[x.changes_motion], x.became) for x in self
        ]
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        return "\n".join(
            "  ".join([*map(str.ljust, row[:3], widths), row[3]]) for row in rows
        )
