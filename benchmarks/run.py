"""Run a plan: prepare a case everywhere, then time it in turns."""

import itertools
import os
import queue
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.plan import Case, compiles, takes_part
from benchmarks.session import ROOT, Contestant, Session

GIVE_UP = 2  # requests over the limit after which a contestant leaves a robot


@dataclass
class Settings:
    """How a plan is run.

    Attributes:
        repeats: turns in which every contestant is timed once.
        turn_seconds: the aim for the length of one turn of one contestant.
        limit: seconds for one request to a worker.
        ways: how many ways of a row are timed, the preferred ones first.
        left_out: libraries that are not asked for a row.
        takes_part: who is asked for which case.
        is_asynchronous: whether JAX runs programs in a thread of its own, as it does by
            default. All calls are waited for, so that this only adds the way there.
    """

    folder: Path
    contestants: list[Contestant]
    repeats: int = 7
    turn_seconds: float = 0.05
    limit: float = 120.0
    ways: int = 9
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)
    takes_part: Callable[[Contestant, Case], bool] = takes_part
    is_asynchronous: bool = False
    say: Callable[[str], None] = print
    cores: list[int] = field(default_factory=lambda: sorted(os.sched_getaffinity(0)))
    missing: dict[str, str] = field(default_factory=dict)  # libraries, with why
    notes: dict[str, str] = field(default_factory=dict)  # how libraries are called

    @property
    def robots(self) -> Path:
        """Where the robots are written."""
        return self.folder / "robots"

    def session(self, who: Contestant, all_cores: bool = False) -> Session:
        """A worker that is yet to start; one core means the last one."""
        cores = self.cores if all_cores else self.cores[-1:]
        log = self.folder / "workers.log"
        return Session(who, cores, log, self.is_asynchronous)


def write_robots(settings: Settings, names: Iterable[str]) -> None:
    """Write the robots in a process of its own: this one never loads JAX."""
    command = [sys.executable, "-m", "benchmarks.robots", str(settings.robots)]
    environment = os.environ | {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    subprocess.run([*command, *sorted(names)], check=True, cwd=ROOT, env=environment)


def run(cases: list[Case], settings: Settings, save: Callable[[list], None]) -> list:
    """The records of all cases; `save` gets those so far after each case."""
    records: list[dict[str, Any]] = []
    write_robots(settings, {case.robot for case in cases})
    for place, group in itertools.groupby(cases, lambda c: (c.robot, c.all_cores)):
        group = list(group)
        write_references(settings, place[0], {case.row for case in group})
        sessions = _open(group, settings)
        try:
            for case in group:
                records += run_case(case, sessions, settings)
                save(records)
        finally:
            for session in sessions:
                session.stop()
    return records


def write_references(settings: Settings, robot: str, rows: set[str]) -> None:
    """The results of jaxdyn in double precision, with which all are compared."""
    session = settings.session(Contestant("jaxdyn", "float64"))
    limit = 10 * settings.limit
    try:
        session.ask(limit, do="load", folder=str(settings.robots / robot))
        for row in sorted(rows):
            if session.ask(limit, do="ways", row=row).get("ways"):
                answer = session.ask(limit, do="refer", row=row)
                if "failed" in answer:
                    settings.say(f"no reference: {robot} {row}: {answer['failed']}")
    finally:
        session.stop()


def run_case(case: Case, sessions: list[Session], settings: Settings) -> list[dict]:
    """One record for each contestant and way: seconds of all turns, or why not."""
    sessions = [x for x in sessions if settings.takes_part(x.who, case)]
    start = time.monotonic()
    prepared = _everywhere(
        sessions, settings, lambda session: _prepare(case, session, settings)
    )
    entries = [
        ({"case": asdict(case), **asdict(session.who), **answer, "turns": []}, session)
        for session, answers in zip(sessions, prepared, strict=True)
        for answer in answers
    ]
    middle = time.monotonic()
    for _ in range(settings.repeats):
        for entry, session in entries:
            if "failed" not in entry:
                _turn(case, session, entry, settings)
    for session in sessions:
        if session.process is not None:
            peak = session.ask(settings.limit, do="drop").get("peak_memory")
            for entry, owner in entries:
                if owner is session:
                    entry["peak_memory"] = peak
    spent = f"{middle - start:.0f} + {time.monotonic() - middle:.0f} s"
    records = [entry for entry, _ in entries]
    settings.say(f"{_line(case, records)} ({spent})")
    return records


def run_compile(
    cases: list[Case], settings: Settings, save: Callable[[list], None]
) -> list[dict[str, Any]]:
    """Seconds to trace and compile, one worker at a time, in turns."""
    write_robots(settings, {case.robot for case in cases})
    records: list[dict[str, Any]] = []
    sessions = [settings.session(who) for who in settings.contestants]
    try:
        for _ in range(settings.repeats):
            for case, session in itertools.product(cases, sessions):
                is_missing = session.who.peer in settings.missing
                if not is_missing and compiles(session.who, case):
                    _compile(case, session, settings, records)
            save(records)
    finally:
        for session in sessions:
            session.stop()
    for record in records:
        if record["turns"]:
            case, seconds = record["case"], statistics.median(record["turns"])
            what = f"{case['robot']} {case['row']} {record['peer']} {record['way']}"
            settings.say(f"compile {what}: {seconds:.2f} s")
    return records


def run_startup(settings: Settings) -> dict[str, Any]:
    """Import times, and calls of jaxdyn outside of any jit."""
    imports = {}
    codes = {"python": "pass", "jax": "import jax", "jaxdyn": "import jaxdyn"}
    for name, code in [*codes.items()] * 3:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
        imports.setdefault(name, []).append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in imports.items()}
    session = settings.session(Contestant("jaxdyn", "float64"))
    write_robots(settings, ["arm"])
    try:
        session.ask(settings.limit, do="load", folder=str(settings.robots / "arm"))
        calls = session.ask(settings.limit, do="plain_calls")
    finally:
        session.stop()
    bare = medians.pop("python")
    return {"import": {k: v - bare for k, v in medians.items()}, "plain_calls": calls}


def _compile(
    case: Case, session: Session, settings: Settings, records: list[dict[str, Any]]
) -> None:
    """One compilation of each way, added to the record of the case."""
    folder = str(settings.robots / case.robot)
    answer = session.ask(10 * settings.limit, do="load", folder=folder)
    if "failed" not in answer:
        answer = session.ask(settings.limit, do="ways", row=case.row)
    for way in (answer.get("ways") or [""])[: settings.ways]:
        key = {"case": asdict(case), **asdict(session.who), "way": way}
        known = [r for r in records if all(r[k] == v for k, v in key.items())]
        record = known[0] if known else key | {"turns": []}
        if not known:
            records.append(record)
        if "failed" in record:
            continue
        if answer.get("ways"):
            request = {"row": case.row, "way": way, "batch": case.batch}
            answer = answer | session.ask(settings.limit, do="compile", **request)
        if "failed" in answer or not answer.get("ways"):
            record["failed"] = answer.get("failed") or answer.get("absent")
        else:
            record["turns"].append(answer["seconds"])
            record["memory"] = answer["memory"]


def _open(cases: list[Case], settings: Settings) -> list[Session]:
    """Start all workers and load the robot; libraries that are missing stay out."""
    sessions = [
        settings.session(who, cases[0].all_cores)
        for who in settings.contestants
        if who.peer not in settings.missing
        and any(settings.takes_part(who, case) for case in cases)
    ]
    folder = str(settings.robots / cases[0].robot)
    answers = _everywhere(
        sessions,
        settings,
        lambda session: session.ask(10 * settings.limit, do="load", folder=folder),
    )
    for session, answer in zip(sessions, answers, strict=True):
        if answer.get("missing"):
            settings.missing[session.who.peer] = answer["failed"]
            settings.say(f"{session.who.peer} is {answer['failed']}")
            session.stop()
        elif "failed" in answer:
            session.given_up = f"cannot load the robot: {answer['failed']}"
            settings.say(f"{session.who} {session.given_up}")
        elif answer["note"]:
            settings.notes[session.who.peer] = answer["note"]
    return [s for s in sessions if s.who.peer not in settings.missing]


def _everywhere(
    sessions: list[Session], settings: Settings, work: Callable[[Session], Any]
) -> list[Any]:
    """The results of some work in all sessions, as many at a time as there are cores.

    Compilation is not timed here, so it may use a core that measurements do not.
    """
    free: queue.Queue[int] = queue.Queue()
    for core in settings.cores:
        free.put(core)

    def alone(session: Session) -> Any:
        home, core = session.cores, free.get()
        session.cores = [core] if len(home) == 1 else home
        try:
            return work(session)
        finally:
            session.cores = home
            free.put(core)

    with ThreadPoolExecutor(len(settings.cores)) as executor:
        return list(executor.map(alone, sessions))


def _prepare(case: Case, session: Session, settings: Settings) -> list[dict[str, Any]]:
    """The answers for all ways of a row."""
    limit, late = settings.limit, session.late
    if session.given_up:
        return [{"way": "", "failed": session.given_up}]
    if session.who.peer in settings.left_out.get(case.row, ()):
        return [{"way": "", "failed": "left out of short runs: slow to compile"}]
    offered = session.ask(limit, do="ways", row=case.row)
    if "failed" in offered or offered["absent"]:
        reason = offered.get("failed") or offered["absent"]
        return [{"way": "", "failed": reason}]

    def prepare(way: str) -> dict[str, Any]:
        request = {"row": case.row, "way": way, "batch": case.batch}
        return {"way": way} | session.ask(limit, do="prepare", **request)

    answers = [prepare(way) for way in offered["ways"][: settings.ways]]
    if session.late > late:  # its process was ended, and with it what was ready
        answers = [a if "failed" in a else prepare(a["way"]) for a in answers]
    if session.late >= GIVE_UP:
        session.given_up = f"over the limit of {limit:g} s in earlier rows"
    return answers


def _turn(case: Case, session: Session, entry: dict, settings: Settings) -> None:
    """Time one contestant once."""
    calls = max(1, min(10_000, round(settings.turn_seconds / entry["seconds"])))
    request = {"row": case.row, "way": entry["way"], "calls": calls}
    answer = session.ask(settings.limit, do="time", **request)
    if "failed" in answer:
        entry["failed"] = answer["failed"]
    else:
        entry["turns"].append(answer["seconds"])


def _line(case: Case, records: list[dict[str, Any]]) -> str:
    """The case with the best microseconds per state of each library."""
    best: dict[str, float] = {}
    for record in records:
        if record["turns"]:
            key = f"{record['peer']} {record['precision'][-2:]}"
            each = statistics.median(record["turns"]) * 1e6 / max(case.batch, 1)
            best[key] = min(each, best.get(key, each))
    where = " all cores" if case.all_cores else ""
    cells = ", ".join(f"{key} {value:.3g}" for key, value in best.items())
    return f"{case.robot} {case.row} {case.batch}{where} [us/state]: {cells}"
