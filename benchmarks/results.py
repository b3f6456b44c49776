"""Questions to the records of a run."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Best:
    """The fastest way of some libraries to do a case."""

    seconds: float  # of one call
    record: Record

    @property
    def name(self) -> str:
        """The library, with its way and flags where they are not the usual ones."""
        extra = [self.record["way"]]
        if self.record["flags"] != "default":
            extra.append(self.record["flags"])
        extra = ", ".join(part for part in extra if part)
        return self.record["peer"] + (f" ({extra})" if extra else "")


def select(records: Iterable[Record], **wanted: Any) -> list[Record]:
    """The records with these values; a case's own keys count too."""
    return [
        record
        for record in records
        if all(_value(record, key) == value for key, value in wanted.items())
    ]


def best(records: Iterable[Record], peers: Iterable[str], **wanted: Any) -> Best | None:
    """The fastest of the libraries over their ways and flags, by median."""
    peers = tuple(peers)
    found = [
        Best(statistics.median(record["turns"]), record)
        for record in select(records, **wanted)
        if record["peer"] in peers and record["turns"]
    ]
    return min(found, key=lambda b: b.seconds, default=None)


def reasons(records: Iterable[Record], peer: str, **wanted: Any) -> list[str]:
    """Why a library has no result: all different reasons."""
    found = select(records, peer=peer, **wanted)
    return sorted({record["failed"] for record in found if "failed" in record})


def _value(record: Record, key: str) -> Any:
    return record[key] if key in record else record["case"][key]
