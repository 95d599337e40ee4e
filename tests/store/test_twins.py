"""Two servers that are asked the same; one is restarted at any time, and nobody can tell which.

``HYPOTHESIS_PROFILE=long pytest tests/store/test_twins.py`` searches for much longer.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import asdict
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pytest_sqsq import SqsServer

START = "2100-01-01T00:00:00Z"
QUEUES = ["orders", "orders.fifo", "dead", "dead.fifo"]
QUEUE = st.sampled_from(QUEUES)
SECONDS = st.sampled_from([0, 1, 5, 30])
SPANS = st.sampled_from([0.001, 0.5, 1, 5, 29, 30, 299, 300, 3600])
PICK = st.integers(0, 1000)
NUMBERS = count(1)

# What each server makes up for itself: the same in both only in the order of first appearance.
NUMBER = "SequenceNumber"
HANDLES = {"ReceiptHandle", "TaskHandle"}
MADE_UP = {"MessageId", "MessageDeduplicationId", NUMBER, *HANDLES}
MADE_UP_FIELDS = {
    *("message_id", "message_deduplication_id", "sequence_number", "receipt_handle"),
    "slot",
}


class Twin:
    """A server, and what it has made up so far, in order."""

    def __init__(self, store: object, prefix: str) -> None:
        self.server = SqsServer(clock="frozen", start=START, store=store, store_prefix=prefix)
        self.made_up: dict[str, list[str]] = defaultdict(list)
        self.start()

    def start(self) -> None:
        self.server.start()
        self.client = self.server.client(transport="direct")

    def ask(self, action: str, parameters: dict[str, Any]) -> Any:
        """The answer, with the same words for what is the same in all but name."""
        given = dict(parameters)
        for name in HANDLES & given.keys():
            given[name] = self.made_up[name][given[name]]
        try:
            answer = getattr(self.client, action)(**given)
        except ClientError as error:
            return error.response["Error"]["Code"]
        del answer["ResponseMetadata"]
        return self._in_common_words(answer, "", given.get("QueueUrl", ""))

    def _in_common_words(self, value: Any, name: str, queue: str) -> Any:
        if isinstance(value, dict):
            return {key: self._in_common_words(inner, key, queue) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._in_common_words(inner, name, queue) for inner in value]
        if name not in MADE_UP:
            return value
        # Each queue has its own numbers.
        known = self.made_up[f"{queue} {name}" if name == NUMBER else name]
        if value not in known:
            known.append(value)
        return known.index(value)

    def messages(self, queue: str) -> list[dict[str, Any]]:
        """All that is known of what a queue holds, without what each server makes up."""
        views = [asdict(view) for view in self.server.queue(queue).messages()]
        for view in views:
            view.update(dict.fromkeys(MADE_UP_FIELDS))
            view["system_attributes"].update(dict.fromkeys(MADE_UP))
        return views

    def order_of_numbers(self) -> list[list[int]]:
        """For each queue the order of its sequence numbers, of which only that is promised."""
        known = [[*map(int, numbers)] for name, numbers in self.made_up.items() if NUMBER in name]
        return [sorted(range(len(numbers)), key=numbers.__getitem__) for numbers in known]


class Twins(RuleBasedStateMachine):
    """What one of the twins is asked and answers, the other one is and does too."""

    def __init__(self, store: object, *, survives: bool) -> None:
        super().__init__()
        self.survives = survives
        prefix = f"{next(NUMBERS)}:"  # each example has a namespace of its own
        self.restarted, self.other = Twin(store, prefix), Twin("memory", prefix)
        self.count = 0
        for suffix in ("", ".fifo"):
            common = {"FifoQueue": "true"} if suffix else {}
            arn = f"arn:aws:sqs:us-east-1:000000000000:dead{suffix}"
            policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 2})
            self.ask("create_queue", QueueName=f"dead{suffix}", Attributes=common)
            own = {**common, "RedrivePolicy": policy, "MessageRetentionPeriod": "3600"}
            self.ask("create_queue", QueueName=f"orders{suffix}", Attributes=own)

    def teardown(self) -> None:
        for twin in (self.restarted, self.other):
            twin.server.stop()

    def ask(self, action: str, **parameters: Any) -> None:
        if "QueueName" in parameters:
            answers = [twin.ask(action, parameters) for twin in (self.restarted, self.other)]
            assert {type(answer) for answer in answers} == {dict}
            return
        assert self.restarted.ask(action, parameters) == self.other.ask(action, parameters)

    # What is asked

    @rule(queue=QUEUE, group=st.sampled_from("ab"), twice=st.booleans(), delay=SECONDS)
    def send(self, queue: str, group: str, twice: bool, delay: int) -> None:
        self.count += not twice
        more: dict[str, Any] = {"DelaySeconds": delay}
        if queue.endswith(".fifo"):
            more = {"MessageGroupId": group, "MessageDeduplicationId": f"{self.count}"}
        attributes = {"n": {"DataType": "Number", "StringValue": f"{self.count}"}}
        body = f"body {self.count}"
        self.ask(
            "send_message", QueueUrl=queue, MessageBody=body, MessageAttributes=attributes, **more
        )

    @rule(queue=QUEUE, most=st.integers(1, 10), timeout=SECONDS)
    def receive(self, queue: str, most: int, timeout: int) -> None:
        self.ask(
            "receive_message",
            QueueUrl=queue,
            MaxNumberOfMessages=most,
            VisibilityTimeout=timeout,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )

    def handle(self, pick: int) -> int:
        return pick % len(self.other.made_up["ReceiptHandle"])

    @rule(queue=QUEUE, pick=PICK)
    @precondition(lambda self: self.other.made_up["ReceiptHandle"])
    def delete(self, queue: str, pick: int) -> None:
        self.ask("delete_message", QueueUrl=queue, ReceiptHandle=self.handle(pick))

    @rule(queue=QUEUE, pick=PICK, timeout=SECONDS)
    @precondition(lambda self: self.other.made_up["ReceiptHandle"])
    def change_visibility(self, queue: str, pick: int, timeout: int) -> None:
        self.ask(
            "change_message_visibility",
            QueueUrl=queue,
            ReceiptHandle=self.handle(pick),
            VisibilityTimeout=timeout,
        )

    @rule(queue=QUEUE, delay=SECONDS)
    def change_attributes(self, queue: str, delay: int) -> None:
        self.ask("set_queue_attributes", QueueUrl=queue, Attributes={"DelaySeconds": f"{delay}"})

    @rule(queue=QUEUE, value=st.sampled_from("xy"))
    def tag(self, queue: str, value: str) -> None:
        self.ask("tag_queue", QueueUrl=queue, Tags={"key": value})

    @rule(queue=QUEUE, really=st.integers(0, 5))
    def purge(self, queue: str, really: int) -> None:
        if not really:
            self.ask("purge_queue", QueueUrl=queue)

    @rule(suffix=st.sampled_from(["", ".fifo"]), rate=st.sampled_from([None, 1, 2]))
    def redrive(self, suffix: str, rate: int | None) -> None:
        arn = f"arn:aws:sqs:us-east-1:000000000000:dead{suffix}"
        more = {} if rate is None else {"MaxNumberOfMessagesPerSecond": rate}
        self.ask("start_message_move_task", SourceArn=arn, **more)

    @rule(pick=PICK)
    @precondition(lambda self: self.other.made_up["TaskHandle"])
    def cancel_redrive(self, pick: int) -> None:
        tasks = len(self.other.made_up["TaskHandle"])
        self.ask("cancel_message_move_task", TaskHandle=pick % tasks)

    @rule(seconds=SPANS)
    def advance(self, seconds: float) -> None:
        for twin in (self.restarted, self.other):
            twin.server.advance(seconds)

    @rule(queue=QUEUE)
    def look_at_queue(self, queue: str) -> None:
        self.ask("get_queue_attributes", QueueUrl=queue, AttributeNames=["All"])
        self.ask("list_queue_tags", QueueUrl=queue)

    @rule(suffix=st.sampled_from(["", ".fifo"]))
    def look_at_redrives(self, suffix: str) -> None:
        arn = f"arn:aws:sqs:us-east-1:000000000000:dead{suffix}"
        self.ask("list_message_move_tasks", SourceArn=arn, MaxResults=10)

    # What only one of them goes through

    @rule()
    def restart(self) -> None:
        self.restarted.server.restart()

    @rule()
    @precondition(lambda self: self.survives)
    def stop_and_start(self) -> None:
        self.restarted.server.stop()
        self.restarted.start()

    # What must be the same

    @invariant()
    def the_queues_hold_the_same(self) -> None:
        assert self.restarted.server.now == self.other.server.now
        for queue in QUEUES:
            assert self.restarted.messages(queue) == self.other.messages(queue)

    @invariant()
    def sequence_numbers_rise_in_the_same_order(self) -> None:
        assert self.restarted.order_of_numbers() == self.other.order_of_numbers()

    @invariant()
    def every_queue_is_sound(self) -> None:
        self.restarted.server.check()


@pytest.fixture
def machine_settings() -> settings:
    """A short, repeatable run; ``HYPOTHESIS_PROFILE=long`` searches far and anew each time."""
    unchecked = settings(deadline=None, suppress_health_check=list(HealthCheck))
    if os.environ.get("HYPOTHESIS_PROFILE") == "long":
        return settings(unchecked, max_examples=300, stateful_step_count=80)
    return settings(
        unchecked,
        max_examples=8,
        stateful_step_count=40,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
    )


def test_nobody_can_tell_a_server_that_is_restarted_from_one_that_is_not(
    open_store: Any, machine_settings: settings
) -> None:
    run_state_machine_as_test(
        lambda: Twins(open_store.option, survives=open_store.client is not None),
        settings=machine_settings,
    )
