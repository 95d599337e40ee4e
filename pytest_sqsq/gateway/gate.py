"""The gate that every request passes, so that moving time never overlaps with a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Lock, get_ident
from types import TracebackType

from pytest_sqsq.errors import GateTimeout

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
        self._state = _State()

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


class OpenRequest:
    """One request of one thread; a context, entered once.

    A request made inside another one of the same thread, or by the thread that holds the gate
    closed, is part of what is going on there and counts for nothing by itself.
    """

    __slots__ = ("_counted", "_ident", "_label", "_state")

    def __init__(self, state: _State, label: object) -> None:
        self._state = state
        self._label = label
        self._ident = get_ident()
        self._counted = False

    def __enter__(self) -> None:
        state, ident = self._state, self._ident
        with state.lock:
            if state.closed:
                if state.closer == ident:
                    return
                state.wait_until_open(ident)
            if ident not in state.open:
                state.put_in(ident, self._label)
                self._counted = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._counted:
            with self._state.lock:
                self._state.drop(self._ident)


class Parking:
    """The stay of one poll outside the gate, whose lock guards the fields."""

    __slots__ = ("_ident", "_label", "_outside", "_state", "_woken")

    def __init__(self, state: _State) -> None:
        self._state = state
        self._ident = get_ident()
        self._label: object | None = None
        self._outside = False
        self._woken = False

    def leave(self, is_answered: Callable[[], bool]) -> None:
        """Stop counting, unless the answer is there already.

        ``is_answered`` closes the gap between handing out :meth:`wake` and leaving: a poll whose
        answer was settled on before stays open.
        """
        state = self._state
        with state.lock:
            if self._woken or is_answered():
                return
            self._outside = True
            self._label = state.open.get(self._ident)
            state.parked += 1
            state.high_water = max(state.high_water, state.parked)
            if self._label is not None:
                state.drop(self._ident)

    def wake(self) -> None:
        """Count again, also while the gate is closed; called by whoever answers the poll."""
        with self._state.lock:
            self._woken = True
            self._come_back()

    def end(self) -> None:
        """Count again, once the gate is open, if nobody has answered the poll."""
        state = self._state
        with state.lock:
            state.opened.wait_for(
                lambda: not self._outside or not state.closed or state.closer == self._ident
            )
            self._come_back()

    def _come_back(self) -> None:
        if not self._outside:
            return
        self._outside = False
        state = self._state
        state.parked -= 1
        if self._label is not None:
            state.put_in(self._ident, self._label)
        if state.closed:
            state.opened.notify_all()  # this poll's thread may be waiting to come back


class _State:
    """What a gate, its requests and its parked polls share; ``lock`` guards every field."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.opened = Condition(self.lock)
        self.emptied = Condition(self.lock)
        self.turn = Condition(self.lock)
        self.changed = Condition(self.lock)
        self.rested = Condition(self.lock)
        # Thread → label of its request.  A thread's requests lie inside each other.
        self.open: dict[int, object] = {}
        self.closed = False
        self.closer: int | None = None  # the thread whose turn it is
        self.callback: object | None = None  # names one stay in reopened()
        self.parked = 0
        self.high_water = 0
        self.changes = 0
        self.observers = 0
        self.resting_observers = 0

    def put_in(self, ident: int, label: object) -> None:
        self.open[ident] = label
        self.note_change()

    def drop(self, ident: int) -> None:
        del self.open[ident]
        if self.closed and not self.open:
            self.emptied.notify_all()
        self.note_change()

    def take_out(self, ident: int) -> object | None:
        with self.lock:
            label = self.open.get(ident)
            if label is not None:
                self.drop(ident)
            return label

    def note_change(self) -> None:
        self.changes += 1
        if self.observers:
            self.changed.notify_all()
        self.note_rest()

    @property
    def rests(self) -> bool:
        return not self.open and self.parked >= self.high_water

    def note_rest(self) -> None:
        if self.resting_observers and self.rests:
            self.rested.notify_all()

    def open_up(self) -> None:
        self.closed = False
        self.opened.notify_all()

    def wait_until_open(self, ident: int) -> None:
        while self.closed and self.closer != ident:
            self.opened.wait()

    def is_empty(self) -> bool:
        return not self.open

    def require_empty(self, timeout: float) -> None:
        if not self.emptied.wait_for(self.is_empty, timeout):
            raise GateTimeout.for_requests([str(label) for label in self.open.values()], timeout)

    @contextmanager
    def emptied_afterwards(self, timeout: float) -> Iterator[None]:
        """Wait for the open requests after the body; what the body raised goes before."""
        try:
            yield
        except GateTimeout:
            raise
        except Exception:
            with self.lock:
                self.emptied.wait_for(self.is_empty, timeout)
            raise
        with self.lock:
            self.require_empty(timeout)

    def wait_for_turn(self, timeout: float) -> None:
        while self.closer is not None:
            # A long advance may take its time; one that stands in a callback may be waiting for
            # the very request that waits here.
            callback = self.callback
            gave_up = not self.turn.wait(timeout)
            if gave_up and callback is not None and callback is self.callback:
                raise GateTimeout.for_callback(timeout)
