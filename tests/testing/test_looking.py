from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_sqsq.engine.fifo import Group
from pytest_sqsq.errors import JournalForgotten, QueueDoesNotExist
from pytest_sqsq.models import Event

if TYPE_CHECKING:
    from pytest_sqsq.engine.message import Message


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [event.kind for event in events]


@pytest.fixture
def queue(world: Any) -> Any:
    return world.queue("orders")


def test_a_probe_says_what_it_looks_at(world: Any, queue: Any) -> None:
    queue.send("a")
    assert repr(queue) == "<QueueProbe 'orders': 1 visible, 0 in flight, 0 delayed>"
    assert queue.name == "orders"
    assert queue.url == "http://sqs.test/000000000000/orders"
    assert queue.arn == "arn:aws:sqs:us-east-1:000000000000:orders"
    assert (queue.account_id, queue.region) == ("000000000000", "us-east-1")
    assert queue.attributes["ApproximateNumberOfMessages"] == "1"
    assert queue.internals.log.live_count == 1
    world.perform("TagQueue", QueueUrl=queue.url, Tags={"team": "a"})
    assert queue.tags == {"team": "a"}


def test_a_view_shows_a_message_whole(world: Any) -> None:
    queue = world.queue("orders.fifo")
    queue.send(
        "first",
        MessageGroupId="g",
        MessageDeduplicationId="d",
        MessageAttributes={
            "text": {"DataType": "String", "StringValue": "t"},
            "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\x01"},
        },
    )
    world.clock.advance(1)
    queue.send("second", MessageGroupId="g")
    queue.receive(1, visibility_timeout=10)
    first, second = queue.messages()
    start = world.clock.started_ms
    assert first.attributes == {"text": "t", "bytes": b"\x00\x01"}
    assert first.md5_of_body == "8b04d5e3775d298e78455efc5ca404d5"
    assert (first.state, first.receive_count, first.slot) == ("in_flight", 1, 0)
    assert first.receipt_handle is not None
    assert (first.sent_ms, first.visible_at_ms) == (start, start + 11_000)
    assert first.expires_at_ms == start + 345_600_000
    assert (first.message_group_id, first.message_deduplication_id) == ("g", "d")
    assert first.sequence_number == first.system_attributes["SequenceNumber"]
    assert first.system_attributes["ApproximateReceiveCount"] == "1"
    assert first.queue == "orders.fifo"
    assert (second.state, second.receipt_handle, second.visible_at_ms) == ("visible", None, None)
    assert second.why_not_deliverable is not None
    assert second.why_not_deliverable.startswith("message group 'g' waits for 'first', in flight")


def test_messages_can_be_asked_for_by_state(world: Any, queue: Any) -> None:
    queue.send("a")
    queue.send("b", DelaySeconds=5)
    assert [view.body for view in queue.messages()] == ["a", "b"]
    assert [view.body for view in queue.messages("delayed")] == ["b"]
    assert queue.messages("in_flight") == ()


def test_looking_changes_nothing(world: Any, queue: Any) -> None:
    queue.send("a")
    queue.receive()
    before = queue.messages(), queue.history(body="a"), queue.statistics
    queue.message(body="a")
    queue.assert_in_flight("a")
    assert queue.sent_messages
    assert (queue.messages(), queue.history(body="a"), queue.statistics) == before


def test_a_look_sees_what_is_due_by_now(make_world: Callable[..., Any]) -> None:
    world = make_world("frozen")
    queue = world.queue("orders")
    queue.send("a", DelaySeconds=5)
    world.clock.call_at("2030-01-01T00:00:05Z", lambda: queue.assert_contains(state="visible"))
    world.clock.advance(5)


def test_one_message_is_found_by_id_or_by_what_it_is_like(queue: Any) -> None:
    queue.send('{"n": 1}')
    second = queue.send('{"n": 2}')
    assert queue.message(second.message_id) == second
    assert queue.message(json={"n": 2}) == second
    with pytest.raises(AssertionError, match=r"^expected 1 message on 'orders'; there are 2\n"):
        queue.message()
    with pytest.raises(TypeError, match=r"^message takes an id, or what the message is like, not"):
        queue.message(second.message_id, json={"n": 2})


def test_a_message_that_is_missing_by_its_id_is_told_with_what_became_of_it(
    queue: Any, failure_of: Callable[..., str]
) -> None:
    sent = queue.send("a")
    queue.delete(queue.receive()[0])
    assert failure_of(queue.message, sent.message_id) == (
        """\
expected 1 message with id '<id>' on 'orders'; there is none
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 0 visible, 0 in flight, 0 delayed
  closest: 'a' deleted at +0 s, received once, id <id>
    +0 s sent
    +0 s received #1, in flight until +30 s
    +0 s deleted
  hint: such a message was deleted at +0 s"""
    )


def test_a_history_goes_on_after_deletion(world: Any, queue: Any) -> None:
    sent = queue.send("a", DelaySeconds=5)
    queue.send("b")
    world.clock.advance(5)
    queue.receive(2, visibility_timeout=10)
    world.clock.advance(10)
    queue.delete(queue.receive()[0])
    history = queue.history(sent)
    assert kinds(history) == ["sent", "visible", "received", "visible", "received", "deleted"]
    assert [event.at_ms - sent.sent_ms for event in history] == [0, 5000, 5000, 15000, 15000, 15000]
    assert queue.history(sent.message_id) == queue.history(body="a") == history
    assert queue.history(body="c") == ()


def test_a_purge_belongs_to_the_history_of_what_was_there(queue: Any) -> None:
    queue.send("gone")
    queue.delete(queue.receive()[0])
    queue.send("purged")
    queue.purge()
    queue.send("later")
    assert kinds(queue.history(body="gone")) == ["sent", "received", "deleted"]
    assert kinds(queue.history(body="purged")) == ["sent", "purged"]
    assert kinds(queue.history(body="later")) == ["sent"]


def test_a_history_holds_duplicates_that_were_dropped(world: Any) -> None:
    queue = world.queue("orders.fifo")
    sent = queue.send("a", MessageGroupId="g")
    assert queue.send("a", MessageGroupId="g") == sent
    assert kinds(queue.history(sent)) == ["sent", "deduplicated"]


def test_a_history_is_whole_or_not_given(make_world: Callable[..., Any]) -> None:
    queue = make_world(journal_size=3).queue("orders")
    first = queue.send("a")
    queue.receive()
    second = queue.send("b")
    queue.receive()
    with pytest.raises(JournalForgotten):
        queue.history(first)
    assert kinds(queue.history(second)) == ["sent", "received"]
    with pytest.raises(JournalForgotten):
        queue.history(body="b")


def test_sent_messages_are_there_after_deletion_with_all_they_had(world: Any) -> None:
    queue = world.queue("orders.fifo")
    attribute = {"DataType": "String", "StringValue": "t"}
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}
    queue.send(
        "a", MessageGroupId="g", MessageAttributes={"k": attribute}, MessageSystemAttributes=trace
    )
    queue.send("b", MessageGroupId="g")
    (received,) = queue.receive(1)
    queue.delete(received)
    first, second = queue.sent_messages
    assert (first.body, first.attributes) == ("a", {"k": "t"})
    assert first.system_attributes == received.system_attributes
    assert first.message_group_id == "g"
    assert second == queue.messages()[0]


def test_purged_messages_were_sent(queue: Any) -> None:
    queue.send("a", MessageAttributes={"k": {"DataType": "Number", "StringValue": "1"}})
    queue.purge()
    (sent,) = queue.sent_messages
    assert (sent.body, sent.attributes) == ("a", {"k": "1"})
    assert sent.why_not_deliverable == "purged at 2030-01-01T00:00:00.000Z"


def test_what_the_journal_forgets_it_forgets_whole(make_world: Callable[..., Any]) -> None:
    queue = make_world(journal_size=3).queue("orders")
    for number in range(10):
        attribute = {"DataType": "Number", "StringValue": str(number)}
        queue.send("a", MessageAttributes={"n": attribute})
    contents = queue.internals.journal.contents
    assert [content.attributes["n"].value for content in contents.values()] == ["7", "8", "9"]


def test_a_message_that_comes_back_keeps_what_it_had(world: Any) -> None:
    queue = world.queue("orders")
    world.perform(
        "SetQueueAttributes",
        QueueUrl=queue.url,
        Attributes={
            "RedrivePolicy": f'{{"deadLetterTargetArn":"{queue.arn}","maxReceiveCount":1}}'
        },
    )
    sent = queue.send("a", MessageAttributes={"k": {"DataType": "Number", "StringValue": "1"}})
    for _ in range(3):
        queue.receive()
        world.clock.advance(30)
    assert kinds(queue.history(sent)).count("moved") == 3
    queue.purge()
    (gone,) = queue.sent_messages
    assert (gone.attributes, gone.receive_count) == ({"k": "1"}, 3)
    assert queue.assert_dead_lettered("a").message_id == sent.message_id


def test_a_probe_follows_its_name(world: Any, queue: Any) -> None:
    queue.send("a")
    world.perform("DeleteQueue", QueueUrl=queue.url)
    with pytest.raises(QueueDoesNotExist):
        queue.messages()
    world.queue("orders")
    queue.assert_nothing_sent()


def test_a_blocked_message_names_the_first_that_is_hidden(world: Any) -> None:
    queue = world.queue("orders.fifo")
    for body in "abc":
        queue.send(body, MessageGroupId="g")

    def blocker() -> str | None:
        why = queue.message(body="c").why_not_deliverable
        return None if why is None else why.partition("waits for ")[2][:3]

    assert blocker() is None
    first, second = queue.receive(2)
    assert blocker() == "'a'"
    world.perform(
        "ChangeMessageVisibility",
        QueueUrl=queue.url,
        ReceiptHandle=first.receipt_handle,
        VisibilityTimeout=0,
    )
    assert blocker() == "'b'"
    queue.delete(second)
    assert blocker() is None
    (first,) = queue.receive()
    assert blocker() == "'a'"
    queue.delete(first)
    assert blocker() is None


def test_a_long_group_is_looked_at_without_walking_it_for_each_message(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = world.queue("orders.fifo")
    for number in range(200):
        queue.send(str(number), MessageGroupId="g")
    steps = 0
    walk = Group.__iter__

    def count_steps(group: Group) -> Iterator[Message]:
        nonlocal steps
        for message in walk(group):
            steps += 1
            yield message

    queue.delete(queue.receive()[0])
    monkeypatch.setattr(Group, "__iter__", count_steps)
    assert len(queue.messages()) == 199
    assert steps <= 200


def test_the_body_of_a_blocking_message_is_cut(world: Any) -> None:
    queue = world.queue("orders.fifo")
    queue.send("x" * 1000, MessageGroupId="g")
    queue.receive()
    assert queue.send("b", MessageGroupId="g").why_not_deliverable == (
        f"message group 'g' waits for '{'x' * 79}…', in flight until 2030-01-01T00:00:30.000Z"
        " (receive 1)"
    )
