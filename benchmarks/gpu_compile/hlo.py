"""Kernels and bytes of a compiled program, counted in the text of its HLO."""

import re
from dataclasses import dataclass, field

# operations that launch nothing
FREE = frozenset(
    """
    parameter constant tuple get-tuple-element bitcast after-all opt-barrier
    partition-id replica-id
    """.split()
)
SLICES = ("slice", "dynamic-slice", "gather")
UPDATE = "dynamic-update-slice"
LINE = re.compile(r"\s*(ROOT )?%?([\w.-]+) = (.*)")
HEADER = re.compile(r"(ENTRY )?%?([\w.-]+) \(.*\{$")
ARRAY = re.compile(r"\b(pred|bf16|[fcsu]\d+)\w*\[([\d,]*)\]")


@dataclass
class Operation:
    """A line of HLO: its kind, result in bytes, operands by name, and all its text."""

    name: str
    kind: str
    size: int
    operands: list[str]
    text: str
    is_root: bool

    def named(self, attribute: str) -> str:
        """The computation that an attribute names; empty if there is none."""
        found = re.search(rf"\b{attribute}=%?([\w.-]+)", self.text)
        return found[1] if found else ""


Computation = dict[str, Operation]


@dataclass
class Count:
    """What one call does.

    Attributes:
        kernels: how many are launched, those of a loop in each of its rounds.
        moved: bytes that kernels read and write.
        seconds: an estimate, the sum over kernels of the longer of `launch` and the
            time for their bytes.
        loops: of each loop the rounds and the kernels in one of them.
        kinds: how many kernels there are of each kind of operation.
    """

    kernels: int = 0
    moved: int = 0
    seconds: float = 0.0
    loops: list[str] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)

    def add(self, other: "Count", times: int = 1) -> None:
        """Count another as often."""
        self.kernels += times * other.kernels
        self.moved += times * other.moved
        self.seconds += times * other.seconds
        for kind, count in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + times * count


class Program:
    """A compiled program.

    Args:
        text: the optimized HLO, as a compiled function of JAX prints it.
        bandwidth: of the device, in bytes a second.
        launch: the seconds from one kernel to the next.
    """

    def __init__(self, text: str, bandwidth: float, launch: float):
        self.bandwidth, self.launch = bandwidth, launch
        self.computations: dict[str, Computation] = {}
        self.entry, current = "", {}
        for line in text.splitlines():
            if header := HEADER.match(line):
                current = self.computations.setdefault(header[2], {})
                self.entry = header[2] if header[1] else self.entry
            elif line.startswith(" ") and (found := LINE.match(line)):
                current[found[2]] = _operation(*found.groups())

    def count(self, name: str = "") -> Count:
        """All that a computation launches, by default the whole program."""
        own, operations = Count(), self.computations[name or self.entry]
        for op in operations.values():
            if op.kind in FREE:
                continue
            if op.kind == "while":
                self._loop(own, op)
            elif op.kind == "conditional":
                names = re.findall(r"%([\w.-]+)", _after(op.text, "computations={"))
                names = names or [
                    op.named("true_computation"),
                    op.named("false_computation"),
                ]
                own.add(max(map(self.count, names), key=lambda c: c.kernels))
            elif op.kind == "call":
                inner = self.count(op.named("to_apply"))
                own.add(inner)
                own.loops += inner.loops
            elif not op.kind.endswith("-done"):
                moved = self._moved(op, operations)
                seconds = max(self.launch, moved / self.bandwidth)
                own.add(Count(1, moved, seconds, kinds={_kind(op): 1}))
        return own

    def _loop(self, own: Count, op: Operation) -> None:
        """A loop whose rounds are not known counts once, and is marked so."""
        known = re.search(r"known_trip_count\W+n\W+(\d+)", op.text)
        body = self.count(op.named("body"))
        own.add(body, int(known[1]) if known else 1)
        inner = f"({' '.join(body.loops)})" if body.loops else ""
        own.loops.append(f"{known[1] if known else '?'}x{body.kernels}{inner}")

    def _moved(self, op: Operation, operations: Computation) -> int:
        sizes = [operations[x].size for x in op.operands if x in operations]
        if op.kind.startswith("fusion"):
            return self._moved_by_fusion(self.computations[op.named("calls")])
        if op.kind in SLICES:
            return 2 * op.size
        if op.kind == UPDATE:
            return 2 * sizes[1]
        return sum(sizes) + op.size

    def _moved_by_fusion(self, inner: Computation) -> int:
        users: dict[str, list[Operation]] = {}
        for op in inner.values():
            for x in op.operands:
                users.setdefault(x, []).append(op)
        root = next(op for op in inner.values() if op.is_root)
        arrays = [op for op in inner.values() if op.kind == "parameter"]
        return sum(_read(x, users) for x in arrays) + _written(root, inner)


def _read(array: Operation, users: dict[str, list[Operation]]) -> int:
    """The bytes that a fusion needs of an array: perhaps some slices, or none."""
    total = 0
    for user in users.get(array.name, []):
        is_first = user.operands[0] == array.name
        if user.kind == "bitcast":
            total += _read(user, users)
        elif user.kind in SLICES and is_first:
            total += user.size
        elif user.kind != UPDATE or not is_first:
            return array.size
    return min(total, array.size)


def _written(result: Operation, inner: Computation) -> int:
    """The bytes that a fusion writes: of an array that it updates only these."""
    if result.kind == "bitcast":
        return _written(inner[result.operands[0]], inner)
    if result.kind == "tuple":
        return sum(_written(inner[x], inner) for x in result.operands)
    return inner[result.operands[1]].size if result.kind == UPDATE else result.size


def _operation(root: str | None, name: str, rest: str) -> Operation:
    end = _closing(rest, 0) + 1 if rest.startswith("(") else rest.index(" ")
    shape, rest = rest[:end], rest[end:].strip()
    opening = rest.index("(")
    operands = rest[opening : _closing(rest, opening) + 1]
    names = re.findall(r"%([\w.-]+)", operands)
    return Operation(name, rest[:opening], _size(shape), names, rest, bool(root))


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` closes."""
    depth = 0
    for k in range(start, len(text)):
        depth += (text[k] == "(") - (text[k] == ")")
        if not depth:
            return k
    return len(text)


def _size(shape: str) -> int:
    """The bytes of all arrays of a type."""
    total = 0
    for kind, lengths in ARRAY.findall(shape):
        bits = 8 if kind == "pred" else int(re.sub(r"\D", "", kind))
        for length in filter(None, lengths.split(",")):
            bits *= int(length)
        total += bits // 8
    return total


def _kind(op: Operation) -> str:
    if op.kind != "custom-call":
        return op.kind.removesuffix("-start")
    return _after(op.text, 'custom_call_target="').split('"')[0]


def _after(text: str, mark: str) -> str:
    """What follows a mark, up to the next closing brace."""
    return text.partition(mark)[2].partition("}")[0]
