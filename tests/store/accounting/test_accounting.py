"""Load from eight clients, SIGKILL in the middle of it, and every message accounted for."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytest_sqsq import SqsServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import Ledger, Load, ServerProcess


def test_a_redis_that_is_killed_under_load_costs_no_message(
    redis: Any, server: ServerProcess, load: Load
) -> None:
    ledger = load.ledger
    for _ in range(2):
        ledger.wait_for_more(150 + 10 * load.seed)
        redis.kill()
        redis.start()
    ledger.wait_for_more(150)
    ledger.wait_for_dead_letters()
    load.stop()
    assert ledger.refused > 0
    assert ledger.unanswered == 0

    held = server.bodies()
    # The server lived on: what it answered with an error has not happened.
    assert Counter(chain(*held.values())) == Counter(ledger.done["send"] - ledger.done["delete"])
    server.kill()
    with SqsServer(store=redis.url, clock="frozen") as after:
        assert bodies_in(after) == held
        assert_it_goes_on(after, ledger)


def test_a_server_that_is_killed_under_load_costs_no_message(
    redis: Any, server: ServerProcess, load: Load
) -> None:
    ledger = load.ledger
    for _ in range(2):
        ledger.wait_for_more(150 + 10 * load.seed)
        with load.away():
            server.kill()
            server.start()
    ledger.wait_for_more(150)
    ledger.wait_for_dead_letters()
    server.kill()
    load.stop()
    assert ledger.refused == 0
    assert ledger.unanswered > 0

    with SqsServer(store=redis.url, clock="frozen") as after:
        bodies = [*chain(*bodies_in(after).values())]
        live = set(bodies)
        assert len(bodies) == len(live)
        # What was answered holds; what was asked and not answered may have happened or not.
        assert ledger.done["send"] - ledger.asked["delete"] <= live
        assert live <= ledger.asked["send"] - ledger.done["delete"]
        assert_it_goes_on(after, ledger)


def bodies_in(server: SqsServer) -> dict[str, list[str]]:
    return {queue.name: [m.body for m in queue.messages()] for queue in server.queues}


def assert_it_goes_on(server: SqsServer, ledger: Ledger) -> None:
    """Order, counts, handles and sequence numbers."""
    server.check()
    assert_groups_are_in_order(bodies_in(server)["orders.fifo"], ledger)
    assert_handles_work(server, ledger)
    newest = server.queue("orders.fifo").send(
        "after", MessageGroupId="g", MessageDeduplicationId="after"
    )
    assert int(newest.sequence_number or 0) > ledger.last_sequence_number


def assert_groups_are_in_order(bodies: Sequence[str], ledger: Ledger) -> None:
    places = {body: place for place, body in enumerate(bodies)}
    for group in ledger.groups.values():
        found = [places[body] for body in group if body in places]
        assert found == sorted(found)


def assert_handles_work(server: SqsServer, ledger: Ledger) -> None:
    """Those of the last deliveries, of messages that nobody tried to delete."""
    worked = 0
    for queue in server.queues:
        for message in queue.messages("in_flight"):
            count = ledger.counts.get((queue.name, message.body), 0)
            assert message.receive_count >= count
            # Whose last delivery was not answered, nobody holds.
            if message.receive_count == count and message.body not in ledger.asked["delete"]:
                assert ledger.held[message.body] == (queue.name, message.receipt_handle)
                queue.delete(ledger.held[message.body][1])
                assert message.body not in bodies_in(server)[queue.name]
                worked += 1
    assert worked > 0
