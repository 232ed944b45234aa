"""Runs the corpora of attacks and honest reads on the real engines and counts what went wrong, for `attack.py` and tests."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, cast

import yaml

from agentkernel_kb import KnowledgeBase, KnowledgeBuilder, KnowledgeGuardError, Limits, ToolEvent
from agentkernel_kb.guard import check_read_only
from agentkernel_kb.router.resilience import Resilience

Kind = Literal["attacks", "reads"]
FaultKind = Literal["accepted", "broken", "unexplained", "changed", "leaked", "connected", "overran"]
FAULT_KINDS: tuple[FaultKind, ...] = ("accepted", "broken", "unexplained", "changed", "leaked", "connected", "overran")

CORPORA = Path(__file__).parent
MARKER = "canary-5f1e0c7a"
ATTACK_SECONDS = 1.0
READ_SECONDS = 30.0
GROSS_SECONDS = 5.0
PATIENCE_SECONDS = 40.0
_WATCHED_SECONDS = 0.1
_IDLE_SHARE = 0.02  # On a busy machine, work that goes on may get little more.
_QUIET_LOOKS = 2
_STARTING_SECONDS = 1.0
_PATIENT = Resilience(failures=1_000_000)
_ANSWERED = frozenset({"ok", "empty", "partial"})
_STOPPED = frozenset({"refused", "rejected", "timeout", "bad_argument"})
_FEWEST_WORDS_OF_A_REASON = 3


class Item(NamedTuple):
    """A statement of a corpus and why it stands there."""

    statement: str
    reason: str


class Fault(NamedTuple):
    """What went wrong with one statement."""

    kind: FaultKind
    statement: str
    what: str


class World(Protocol):
    """What a dialect's world module offers; `run_unguarded(path, statement) -> str` and `tear_down(path)` may come on top."""

    def build(self, folder: Path) -> Path:
        """Make the sample store in an empty folder and return its path."""
        ...

    def open_backend(self, path: Path) -> KnowledgeBase:
        """Open it as an application would."""
        ...

    def fingerprint(self, path: Path) -> str:
        """Return a hash of its data and schema."""
        ...


Unguarded = Callable[[Path, str], object]


@dataclass
class AttackReport:
    """The attacks that were run, how they ended, and what went wrong."""

    attacks: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    faults: list[Fault] = field(default_factory=list[Fault])
    answered: list[str] = field(default_factory=list[str])

    def count(self, kind: FaultKind) -> int:
        """Return how many attacks had a fault of that kind."""
        return len({fault.statement for fault in self.faults if fault.kind == kind})


@dataclass
class ReadReport:
    """The honest reads that were run, and those that were not answered, with the answer."""

    reads: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def percent(self) -> float:
        """Share of the reads that were not answered, in percent."""
        return 100 * len(self.refused) / self.reads


def dialects() -> list[str]:
    """Return the dialects of which there is a corpus of attacks."""
    return sorted(path.name.removesuffix(".attacks.yaml") for path in CORPORA.glob("*.attacks.yaml"))


def load(dialect: str, kind: Kind) -> list[Item]:
    """Return a corpus."""
    entries = yaml.safe_load((CORPORA / f"{dialect}.{kind}.yaml").read_text(encoding="utf-8"))
    return [Item(**entry) for entry in entries]


def world_of(dialect: str) -> World | None:
    """Return the world on which a dialect's corpora run, or `None` where the guard alone can be tried."""
    path = CORPORA / f"{dialect}_world.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("World", module)


def unguarded_of(world: World | None) -> Unguarded | None:
    """Return the way to the engine past the guard, where the world has one."""
    return cast("Unguarded | None", getattr(world, "run_unguarded", None))


class Range:
    """A folder with the store, a canary that nobody may read, and a port on which nobody may call.

    Args:
        world: Whose store it is.
        folder: An empty folder.
    """

    def __init__(self, world: World, folder: Path) -> None:
        (folder / "store").mkdir()
        self._world, self._folder = world, folder
        self.store = world.build(folder / "store")
        self._canary = folder / "canary.csv"
        self._canary.write_text(f"word\n{MARKER}\n", encoding="utf-8")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self._fingerprint, self._files = world.fingerprint(self.store), self._seen_files()

    def close(self) -> None:
        """Stop listening, and remove what the world made elsewhere than in the folder."""
        self._listener.close()
        if (tear_down := getattr(self._world, "tear_down", None)) is not None:
            tear_down(self.store)

    def aimed(self, statement: str) -> str:
        """Return a statement with the placeholders for the canary and the port filled in."""
        port = str(self._listener.getsockname()[1])
        return statement.replace("{canary}", str(self._canary)).replace("{port}", port)

    def look_around(self) -> None:
        """Take what is there now for how it has to stay: engines may make files of their own when they are opened."""
        self._files = self._seen_files()

    def damage(self) -> Generator[tuple[FaultKind, str]]:
        """Tell what has happened since the last look."""
        if self._calls():
            yield "connected", "it called on the loopback port"
        if (fingerprint := self._world.fingerprint(self.store)) != self._fingerprint:
            self._fingerprint = fingerprint
            yield "changed", "data or schema are others than before"
        if (files := self._seen_files()) != self._files:
            changed = sorted(name for name, _ in self._files ^ files)
            self._files = files
            yield "changed", f"files were made, changed or removed: {changed}"

    def _calls(self) -> int:
        calls = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                self._listener.accept()[0].close()
                calls += 1
        return calls

    def _seen_files(self) -> frozenset[tuple[str, str]]:
        """Return the names of all files, and the content's hash of those that are not the store's."""
        return frozenset(
            (str(path.relative_to(self._folder)), "" if self._folder / "store" in path.parents else _hash(path))
            for path in self._folder.rglob("*")
        )


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@contextlib.contextmanager
def shooting_range(world: World, folder: Path) -> Generator[Range]:
    """Set the range up in a folder, which is the working directory meanwhile: relative paths lead there."""
    place = Range(world, folder)
    with contextlib.chdir(folder), contextlib.closing(place):
        yield place
        # What an engine is left to do would disturb whoever comes next, and a process cannot end well in the midst of it.
        _wait_until_idle(time.monotonic() + PATIENCE_SECONDS)


class Gun:
    """`read_kb` of a router over one backend, with the outcome of each call.

    Args:
        backend: The backend, which is closed at the end.
        seconds: Deadline of a call.
    """

    def __init__(self, backend: KnowledgeBase, seconds: float) -> None:
        self._events: list[ToolEvent] = []
        # Attacks on time are many in a row here; a store is not given up for them, or none of the next would be tried.
        self._builder = KnowledgeBuilder(
            [backend], limits=Limits(seconds=seconds), resilience=_PATIENT, on_event=self._events.append
        )
        self._read_kb = {tool.__name__: tool for tool in self._builder.build()}["read_kb"]
        self._name = backend.backend_name

    def close(self) -> None:
        """Close the backend."""
        self._builder.close()

    def fire(self, statement: str) -> tuple[str, str]:
        """Send a statement and return how the call ended and what the model reads."""
        answer = self._read_kb(self._name, statement)
        return self._events.pop().outcome, answer


def run_attacks(world: World, items: Iterable[Item], folder: Path) -> AttackReport:
    """Send every attack through a router and look what it did."""
    report = AttackReport()
    with (
        shooting_range(world, folder) as place,
        contextlib.closing(Gun(world.open_backend(place.store), ATTACK_SECONDS)) as gun,
    ):
        place.look_around()
        for item in items:
            outcome, answer = _tried(place, item, gun.fire, report)
            report.faults += [Fault(kind, item.statement, answer[:200]) for kind in _faults_of_answer(outcome, answer)]
    return report


def run_unguarded(world: World, items: Iterable[Item], folder: Path) -> AttackReport:
    """Send every attack to the engine's own lock, past the guard; `answered` holds those that only the guard would stop."""
    send = unguarded_of(world)
    if send is None:
        raise LookupError("this world has no way past the guard")
    report = AttackReport()
    with shooting_range(world, folder) as place:
        _outcome_of(lambda: send(place.store, "SELECT 1"))  # The engine may make files of its own.
        place.look_around()
        for item in items:

            def fire(statement: str) -> tuple[str, str]:
                return _outcome_of(lambda: send(place.store, statement))

            if _tried(place, item, fire, report)[0] == "answered":
                report.answered.append(item.statement)
    return report


def _outcome_of(call: Callable[[], object]) -> tuple[str, str]:
    try:
        return "answered", str(call())
    except Exception as error:  # noqa: BLE001 - each engine refuses by errors of its own
        return "timeout" if isinstance(error, TimeoutError) else "refused", str(error)


def _tried(place: Range, item: Item, fire: Callable[[str], tuple[str, str]], report: AttackReport) -> tuple[str, str]:
    """Run one attack, note what it did, and return how it ended and what was answered."""
    started = time.monotonic()
    outcome, answer = fire(place.aimed(item.statement))
    if outcome == "timeout" or time.monotonic() - started >= ATTACK_SECONDS:
        _wait_until_idle(started + GROSS_SECONDS)
    took = time.monotonic() - started
    report.attacks += 1
    report.outcomes[outcome] += 1
    report.faults += [Fault(kind, item.statement, what) for kind, what in place.damage()]
    if MARKER in answer:
        report.faults.append(Fault("leaked", item.statement, "the answer holds what the canary file holds"))
    if took > GROSS_SECONDS:
        report.faults.append(Fault("overran", item.statement, f"it kept the engine busy for {took:.1f} s or more"))
    return outcome, answer


def _wait_until_idle(until: float) -> None:
    """Wait until the process does nothing, or a moment is past: a call that gave up in time may have left its work behind."""
    quiet = 0
    while quiet < _QUIET_LOOKS and time.monotonic() <= until:
        before = _seconds_of_children()  # Looking there costs something itself, which does not count.
        wall, processor = time.monotonic(), time.process_time()
        time.sleep(_WATCHED_SECONDS)
        used, passed = time.process_time() - processor, time.monotonic() - wall
        is_quiet = used + _seconds_of_children() - before < _IDLE_SHARE * passed
        quiet = quiet + 1 if is_quiet else 0


def _seconds_of_children() -> float:
    """Return the processor time of this process's children, in which engines may run, where `/proc` tells it.

    The first second of each is its start: a child that was ended is replaced at once.
    """
    seconds = 0.0
    for listed in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # Threads and children end meanwhile.
            for pid in listed.read_text(encoding="ascii").split():
                fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                seconds += max(0.0, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") - _STARTING_SECONDS)
    return seconds


def _faults_of_answer(outcome: str, answer: str) -> Generator[FaultKind]:
    if outcome in _ANSWERED:
        yield "accepted"
    elif outcome not in _STOPPED:
        yield "broken"
    elif len(answer.removeprefix("Refused: read_kb only reads.").split()) < _FEWEST_WORDS_OF_A_REASON:
        yield "unexplained"


def prove_attacks(dialect: str, items: Iterable[Item]) -> AttackReport:
    """Put every attack before the guard alone, for a dialect without an engine here."""
    report = AttackReport()
    for item in items:
        reason = _guard_refusal(dialect, item.statement)
        report.attacks += 1
        report.outcomes["answered" if reason is None else "refused"] += 1
        if reason is None:
            report.faults.append(Fault("accepted", item.statement, "the guard takes it for a read"))
        elif len(reason.split()) < _FEWEST_WORDS_OF_A_REASON:
            report.faults.append(Fault("unexplained", item.statement, reason))
    return report


def run_reads(world: World, items: Iterable[Item], folder: Path) -> ReadReport:
    """Send every honest read through a router."""
    report = ReadReport()
    with (
        shooting_range(world, folder) as place,
        contextlib.closing(Gun(world.open_backend(place.store), READ_SECONDS)) as gun,
    ):
        for item in items:
            outcome, answer = gun.fire(item.statement)
            report.reads += 1
            if outcome not in _ANSWERED:
                report.refused.append((item.statement, answer))
    return report


def prove_reads(dialect: str, items: Iterable[Item]) -> ReadReport:
    """Put every honest read before the guard alone."""
    report = ReadReport()
    for item in items:
        report.reads += 1
        if (reason := _guard_refusal(dialect, item.statement)) is not None:
            report.refused.append((item.statement, reason))
    return report


def _guard_refusal(dialect: str, statement: str) -> str | None:
    try:
        check_read_only(statement, dialect=dialect)
    except KnowledgeGuardError as refusal:
        return str(refusal)
    return None


def all_attacks(dialect: str, folder: Path) -> AttackReport:
    """Run a dialect's attacks where it has an engine, and prove them where it has not."""
    world, items = world_of(dialect), load(dialect, "attacks")
    return prove_attacks(dialect, items) if world is None else run_attacks(world, items, folder)


def all_reads(dialect: str, folder: Path) -> ReadReport:
    """Run a dialect's honest reads where it has an engine, and prove them where it has not."""
    world, items = world_of(dialect), load(dialect, "reads")
    return prove_reads(dialect, items) if world is None else run_reads(world, items, folder)


def shown(statements: Sequence[str], most: int = 20) -> str:
    """Return statements one a line, shortened."""
    rest = [f"… and {len(statements) - most} more"] if len(statements) > most else []
    return "\n".join([f"  {statement[:110]!r}" for statement in statements[:most]] + rest)
