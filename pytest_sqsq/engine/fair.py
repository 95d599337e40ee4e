"""Fair delivery between the message groups of a standard queue.

A group is a tenant.  One that holds much of what is in flight is noisy, and the messages of
quiet tenants are delivered before those of noisy ones.  Only the order changes: nothing is ever
held back or dropped.  Numbers and rules: the developer guide's page on fair queues.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from pytest_sqsq.engine.deadlines import STALE_MINIMUM, MessageHeap
from pytest_sqsq.engine.message import Message
from pytest_sqsq.limits import (
    NOISY_GROUP_FORGET_MS,
    NOISY_GROUP_MINIMUM_IN_FLIGHT,
    NOISY_GROUP_SHARE_PERCENT,
)


def ready_key(message: Message) -> int | None:
    """Ready messages stand in order of arrival."""
    return message.arrival if message.state == "visible" and not message.moving else None


class Tenant:
    """One message group: its ready messages, and how much of it is in flight."""

    __slots__ = ("in_flight", "is_noisy", "last_sent_ms", "live", "ready")

    def __init__(self) -> None:
        self.ready = MessageHeap(ready_key)
        self.live = 0
        self.in_flight = 0
        self.is_noisy = False
        self.last_sent_ms = 0

    @property
    def forgiven_ms(self) -> int:
        """From when on it is not noisy, whatever it has in flight, unless it sends again."""
        return self.last_sent_ms + NOISY_GROUP_FORGET_MS


class Tenants:
    """All groups of a queue: quiet ones by the arrival of their head, noisy ones by load.

    A tenant is judged when it is about to be served, and its mark stays until its backlog is
    empty or nothing was sent for five minutes; so every operation is O(log groups) amortised.
    ``_forgiving_ms`` is not later than the first instant at which a mark ends by time.
    Guarded by the queue's lock.
    """

    def __init__(self) -> None:
        self._tenants: dict[str, Tenant] = {}
        self._quiet: list[tuple[int, Tenant]] = []
        self._noisy: list[tuple[int, int, Tenant]] = []
        self._marked: set[Tenant] = set()
        self._forgiving_ms: int | None = None

    def __len__(self) -> int:
        return len(self._tenants)

    def enter(self, group_id: str, message: Message) -> None:
        """A message of this group has entered the queue."""
        tenant = self._tenants.get(group_id)
        if tenant is None:
            tenant = self._tenants[group_id] = Tenant()
        tenant.live += 1
        tenant.last_sent_ms = max(tenant.last_sent_ms, message.sent_ms)
        if message.state == "visible":
            self.shown(group_id, message)

    def left(self, group_id: str, *, was_ready: bool) -> None:
        """A message of this group has left the queue."""
        tenant = self._tenants[group_id]
        tenant.live -= 1
        if not tenant.live:
            del self._tenants[group_id]
            self._unmark(tenant)
        elif was_ready:
            tenant.ready.mark_stale()
            self._offer(tenant)

    def shown(self, group_id: str, message: Message) -> None:
        """A message of this group is ready."""
        tenant = self._tenants[group_id]
        tenant.ready.push(message.arrival, message)
        self._offer(tenant)

    def hidden(self, group_id: str) -> None:
        """A ready message of this group is not ready any more, without having been taken."""
        tenant = self._tenants[group_id]
        tenant.ready.mark_stale()
        self._offer(tenant)

    def count_in_flight(self, group_id: str, change: int) -> None:
        """So many more messages of this group are in flight."""
        tenant = self._tenants[group_id]
        tenant.in_flight += change
        if tenant.is_noisy:
            self._offer(tenant)

    def first_arrival(self, in_flight: int, now_ms: int) -> int | None:
        """The arrival of the message that a quiet tenant would deliver next.

        ``in_flight`` counts the whole queue.  Judges the tenants it passes.
        """
        if self._forgiving_ms is not None and self._forgiving_ms <= now_ms:
            self._forgive(now_ms)
        while (tenant := self._first_quiet()) is not None:
            if not self._turns_noisy(tenant, in_flight, now_ms):
                return self._quiet[0][0]
            heappop(self._quiet)
            self._mark(tenant)
        return None

    def pop_quiet(self) -> Message | None:
        """Take the next message of the quiet tenants."""
        tenant = self._first_quiet()
        return None if tenant is None else self._pop(tenant)

    def pop_noisy(self) -> Message | None:
        """Take the next message of the noisy tenants: fewest in flight first."""
        tenant = self._first_noisy()
        return None if tenant is None else self._pop(tenant)

    def oldest(self) -> Message | None:
        """The ready message that arrived first.  O(noisy groups)."""
        heads = [tenant.ready.first() for _, _, tenant in self._noisy if tenant.is_noisy]
        quiet = self._first_quiet()
        if quiet is not None:
            heads.append(quiet.ready.first())
        return min(
            (head for head in heads if head is not None),
            key=lambda message: message.arrival,
            default=None,
        )

    @property
    def has_ready(self) -> bool:
        """Whether any tenant has a ready message.  O(1) amortised."""
        return self._first_quiet() is not None or self._first_noisy() is not None

    def ready_messages(self) -> list[Message]:
        """The messages of all heap entries, stale ones too."""
        return [m for tenant in self._tenants.values() for m in tenant.ready.messages()]

    def clear(self) -> None:
        """Forget all tenants and their marks."""
        self._tenants.clear()
        self._quiet.clear()
        self._noisy.clear()
        self._marked.clear()
        self._forgiving_ms = None

    def check(self, live: list[Message]) -> None:
        """Verify counts and heaps; ``AssertionError`` names the broken invariant.  O(n)."""
        quiet = {(arrival, id(tenant)) for arrival, tenant in self._quiet}
        noisy = {id(tenant) for _, _, tenant in self._noisy}
        for group_id, tenant in self._tenants.items():
            own = [m for m in live if m.message_group_id == group_id]
            flying = sum(m.state == "in_flight" for m in own)
            assert (len(own), flying) == (tenant.live, tenant.in_flight), (
                f"group {group_id!r} counts {tenant.live} live, {tenant.in_flight} in flight;"
                f" there are {len(own)} and {flying}"
            )
            head = tenant.ready.first()
            offered = head is None or (
                id(tenant) in noisy if tenant.is_noisy else (head.arrival, id(tenant)) in quiet
            )
            assert offered, f"group {group_id!r} has a ready message and is in no heap"
        marked = {tenant for tenant in self._tenants.values() if tenant.is_noisy}
        assert marked == self._marked, "the marks differ from the noisy groups"
        assert all(
            self._forgiving_ms is not None and self._forgiving_ms <= tenant.forgiven_ms
            for tenant in marked
        ), "a mark would outlast its five minutes"

    def _pop(self, tenant: Tenant) -> Message | None:
        message = tenant.ready.pop()
        self._offer(tenant)
        return message

    def _offer(self, tenant: Tenant) -> None:
        head = tenant.ready.first()
        if head is None:
            self._unmark(tenant)
        elif tenant.is_noisy:
            heappush(self._noisy, (tenant.in_flight, head.arrival, tenant))
        else:
            heappush(self._quiet, (head.arrival, tenant))
        if len(self._quiet) + len(self._noisy) > 2 * len(self._tenants) + STALE_MINIMUM:
            self._rebuild()

    def _first_quiet(self) -> Tenant | None:
        quiet = self._quiet
        while quiet:
            arrival, tenant = quiet[0]
            head = tenant.ready.first()
            if head is not None and head.arrival == arrival and not tenant.is_noisy:
                return tenant
            heappop(quiet)
        return None

    def _first_noisy(self) -> Tenant | None:
        noisy = self._noisy
        while noisy:
            in_flight, arrival, tenant = noisy[0]
            head = tenant.ready.first()
            current = head is not None and (tenant.in_flight, head.arrival) == (in_flight, arrival)
            if current and tenant.is_noisy:
                return tenant
            heappop(noisy)
        return None

    def _turns_noisy(self, tenant: Tenant, in_flight: int, now_ms: int) -> bool:
        return (
            now_ms < tenant.forgiven_ms
            and tenant.in_flight >= NOISY_GROUP_MINIMUM_IN_FLIGHT
            and tenant.in_flight * 100 > in_flight * NOISY_GROUP_SHARE_PERCENT
        )

    def _mark(self, tenant: Tenant) -> None:
        tenant.is_noisy = True
        self._marked.add(tenant)
        if self._forgiving_ms is None or tenant.forgiven_ms < self._forgiving_ms:
            self._forgiving_ms = tenant.forgiven_ms
        self._offer(tenant)

    def _unmark(self, tenant: Tenant) -> None:
        tenant.is_noisy = False
        self._marked.discard(tenant)

    def _forgive(self, now_ms: int) -> None:
        """End the marks of tenants that have sent nothing for five minutes.  O(noisy groups)."""
        for tenant in [one for one in self._marked if one.forgiven_ms <= now_ms]:
            self._unmark(tenant)
            self._offer(tenant)
        self._forgiving_ms = min((one.forgiven_ms for one in self._marked), default=None)

    def _rebuild(self) -> None:
        self._quiet, self._noisy = [], []
        for tenant in self._tenants.values():
            head = tenant.ready.first()
            if head is not None and tenant.is_noisy:
                self._noisy.append((tenant.in_flight, head.arrival, tenant))
            elif head is not None:
                self._quiet.append((head.arrival, tenant))
        heapify(self._quiet)
        heapify(self._noisy)
