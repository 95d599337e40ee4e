"""The gate that every request passes, so that moving time never overlaps with a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from pytest_sqsq.gateway.gate_state import GateState, OpenRequest, Parking

# Real seconds that the one who closes the gate waits for the requests in the way.
CLOSE_TIMEOUT = 5.0


class RequestGate:
    """Counts open requests, and keeps them out while the gate is closed.

    A request is *open* from its first byte until its answer is written, unless it is parked.  A
    parked poll is open again from the moment its answer is settled on, even while the gate is
    closed; a request set aside counts for nothing until it returns.  The thread that closes the
    gate is never in its own way.  Everything is O(1), apart from the texts of failures.
    """

    def __init__(self) -> None:
        self._state = GateState()

    # Requests

    def request(self, label: object) -> OpenRequest:
        """A context that is one request of this thread; waits while the gate is closed.

        ``str(label)`` names the request in a failure, and is built only then.
        """
        return OpenRequest(self._state, label)

    @contextmanager
    def parked(self) -> Iterator[Parking]:
        """A context for this thread's request while it is a parked poll, which does not count.

        It counts until :meth:`Parking.leave` is called, and again from :meth:`Parking.wake` on.
        Left without a wake, the request counts again as soon as the gate is open.
        """
        parking = Parking(self._state)
        try:
            yield parking
        finally:
            parking.end()

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """A context in which this thread's request does not count, and is no poll either.

        For requests that wait for the clock or for other requests.
        """
        state, ident = self._state, get_ident()
        label = state.take_out(ident)
        try:
            yield
        finally:
            if label is not None:
                with state.lock:
                    state.wait_until_open(ident)
                    state.put_in(ident, label)

    # Closing

    @contextmanager
    def closed(self, timeout: float = CLOSE_TIMEOUT) -> Iterator[None]:
        """A context in which no request is open and none begins; one thread at a time.

        Waits until no request is open, and after its body until the answers of the polls woken
        meanwhile are written; each for at most ``timeout`` real seconds.  Raises
        :class:`GateTimeout`, naming the requests in the way.  Polls stay parked.  Inside another
        ``closed()`` of the same thread it changes nothing.
        """
        state = self._state
        with self.serialised(timeout):
            if state.closed:
                yield
                return
            try:
                with state.lock:
                    state.closed = True
                    state.require_empty(timeout)
                with state.emptied_afterwards(timeout):
                    yield
            finally:
                with state.lock:
                    state.open_up()

    @contextmanager
    def reopened(self, timeout: float = CLOSE_TIMEOUT) -> Iterator[None]:
        """A context inside ``closed()`` in which the gate is open, and closed again afterwards."""
        state = self._state
        with state.lock:
            if state.closer != get_ident() or not state.closed:
                raise RuntimeError("only the thread that has closed the gate can reopen it")
            state.callback = object()
            state.open_up()
        with state.emptied_afterwards(timeout):
            try:
                yield
            finally:
                with state.lock:
                    state.callback = None
                    state.closed = True

    @contextmanager
    def serialised(self, timeout: float = CLOSE_TIMEOUT) -> Iterator[None]:
        """A context in which no other thread is in ``closed()`` or here; requests go on.

        Raises :class:`GateTimeout` if the thread inside stands in ``reopened()`` for longer than
        ``timeout`` real seconds: it may be waiting for this one.
        """
        state, ident = self._state, get_ident()
        if state.closer == ident:
            if state.callback is not None:
                raise RuntimeError("a callback cannot close the gate that was opened for it")
            yield
            return
        # Out of the way before waiting: two requests that close would wait for each other.
        label = state.take_out(ident)
        try:
            with state.lock:
                state.wait_for_turn(timeout)
                state.closer = ident
            yield
        finally:
            with state.lock:
                if label is not None:
                    state.put_in(ident, label)
                if state.closer == ident:
                    state.closer = None
                    state.turn.notify()

    # What helpers look at

    @property
    def is_closed(self) -> bool:
        """Whether requests are kept out."""
        return self._state.closed

    @property
    def open_count(self) -> int:
        """How many requests are open."""
        return len(self._state.open)

    @property
    def parked_count(self) -> int:
        """How many polls are parked."""
        return self._state.parked

    @property
    def parked_high_water(self) -> int:
        """The most polls parked at once since the mark was last lowered."""
        return self._state.high_water

    @property
    def changes(self) -> int:
        """Rises whenever a request begins, ends, parks or wakes."""
        return self._state.changes

    def lower_high_water(self) -> None:
        """Set the high-water mark to the number of polls parked now."""
        state = self._state
        with state.lock:
            state.high_water = state.parked
            state.note_rest()

    def wait_for_change(self, since: int, timeout: float | None = None) -> int:
        """Block until ``changes`` is not ``since``, or for ``timeout`` real seconds; returns it."""
        state = self._state
        with state.lock:
            state.observers += 1
            try:
                state.changed.wait_for(lambda: state.changes != since, timeout)
            finally:
                state.observers -= 1
            return state.changes

    def wait_for_rest(self, since: int, timeout: float) -> int:
        """As ``wait_for_change``, but asleep through changes until there is rest.

        That is when no request is open, and as many polls are parked as the high-water mark
        says.  For who can do nothing before.  When the time is up, there may be no rest.
        """
        state = self._state
        with state.lock:
            state.resting_observers += 1
            try:
                state.rested.wait_for(lambda: state.changes != since and state.rests, timeout)
            finally:
                state.resting_observers -= 1
            return state.changes

    def note_change(self) -> None:
        """Count something that happened elsewhere as a change, so that observers look again."""
        with self._state.lock:
            self._state.note_change()

    def open_requests(self) -> tuple[str, ...]:
        """The descriptions of the open requests."""
        with self._state.lock:
            labels = list(self._state.open.values())
        return tuple(str(label) for label in labels)
