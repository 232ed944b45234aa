"""The breaker's state machine (X7): whatever calls do, and however they overlap, it is what the contract of it says."""

from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentkernel_kb.router.breaker import PASS, Breaker, Kind, Ticket

KINDS = st.sampled_from(["unreachable", "timeout", "unauthorized", "missing", "untrusted"])
BEGIN = datetime(2026, 5, 4, 14, 2, tzinfo=UTC)


class BreakerMachine(RuleBasedStateMachine):
    """Calls that enter and end in any order, and time that passes, beside a model that is nothing but the rules."""

    @initialize(failures=st.integers(1, 4), first=st.sampled_from([1.0, 5.0]), most=st.sampled_from([5.0, 30.0]))
    def begin(self, failures: int, first: float, most: float) -> None:
        self.seconds = 0.0
        self.failures, self.first, self.most = failures, first, most
        self.breaker = Breaker(
            failures, first, most, clock=lambda: self.seconds, now=lambda: BEGIN + timedelta(seconds=self.seconds)
        )
        self.out: list[Ticket] = []
        self.probe: Ticket | None = None
        self.in_a_row = 0
        self.opened_for: float | None = None
        self.next_try = 0.0

    @property
    def probe_is_out(self) -> bool:
        return self.probe is not None

    def close(self) -> None:
        self.in_a_row, self.opened_for = 0, None
        self.probe = None  # One that is still out when another call's success closes it is a call like any other from then on.

    @rule()
    def a_call_enters(self) -> None:
        ticket = self.breaker.enter()
        if self.opened_for is None:
            assert ticket == PASS
        elif self.seconds < self.next_try or self.probe_is_out:
            assert ticket is None
        else:
            assert ticket not in (None, PASS, *self.out)
            self.probe = ticket
        if ticket is not None:
            self.out.append(ticket)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def a_call_succeeds(self, data: st.DataObject) -> None:
        self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        self.breaker.succeeded()
        self.close()

    @precondition(lambda self: self.out)
    @rule(data=st.data(), kind=KINDS)
    def a_call_fails(self, data: st.DataObject, kind: Kind) -> None:
        ticket = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        opened = self.breaker.failed(ticket, kind)
        was_open = self.opened_for is not None
        if was_open and ticket != self.probe:
            assert not opened
            return
        self.in_a_row += 1
        assert opened == (was_open or self.in_a_row >= self.failures)
        if opened:
            self.probe = None
            self.opened_for = min(self.most, self.first if self.opened_for is None else 2 * self.opened_for)
            self.next_try = self.seconds + self.opened_for

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def a_call_ends_without_telling(self, data: st.DataObject) -> None:
        ticket = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        self.breaker.left(ticket)
        if ticket == self.probe:
            self.probe = None

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0, 20.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.seconds += seconds

    @invariant()
    def it_is_where_the_rules_say(self) -> None:
        if self.opened_for is None:
            assert self.breaker.state == "closed"
            assert self.breaker.outage is None
            return
        waits = self.seconds < self.next_try and not self.probe_is_out
        assert self.breaker.state == ("open" if waits else "half-open")

    @invariant()
    def it_tells_of_its_failures(self) -> None:
        assert self.breaker.failing == (self.in_a_row > 0)
        outage = self.breaker.outage
        if outage is not None:
            assert outage.failures == self.in_a_row >= self.failures
            assert outage.since <= BEGIN + timedelta(seconds=self.seconds)
            assert (outage.next_try is None) == self.probe_is_out
            if outage.next_try is not None:
                assert outage.next_try == BEGIN + timedelta(seconds=self.next_try)


TestBreaker = BreakerMachine.TestCase
TestBreaker.settings = settings(max_examples=150, stateful_step_count=40)
