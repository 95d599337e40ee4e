"""What the requests at one gate share, and what each of them holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Lock, get_ident
from types import TracebackType

from pytest_sqsq.errors import GateTimeout


class GateState:
    """What a gate, its requests and its parked polls share; ``lock`` guards every field.

    Methods are called with the lock held, apart from those that say that they take it.  The
    conditions: ``opened``, for who waits outside; ``emptied``, for who closes and waits for open
    requests; ``turn``, for the next who closes; ``changed`` and ``rested``, for observers.
    """

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
        """Count a thread's request as open."""
        self.open[ident] = label
        self.note_change()

    def drop(self, ident: int) -> None:
        """Count a thread's request as open no more."""
        del self.open[ident]
        if self.closed and not self.open:
            self.emptied.notify_all()
        self.note_change()

    def take_out(self, ident: int) -> object | None:
        """As :meth:`drop`, if there is one; returns its label.  Takes the lock."""
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
        """Whether no request is open, and as many polls are parked as have been."""
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
        """After the body wait for the open requests; what it raised goes before.

        Takes the lock for that.
        """
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


class OpenRequest:
    """One request of one thread; a context, entered once.

    A request made inside another one of the same thread, or by the thread that holds the gate
    closed, is part of what is going on there and counts for nothing by itself.
    """

    __slots__ = ("_counted", "_ident", "_label", "_state")

    def __init__(self, state: GateState, label: object) -> None:
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

    def __init__(self, state: GateState) -> None:
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
