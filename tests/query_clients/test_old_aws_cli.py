from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_sqsq import QueueProbe, SqsServer


def test_a_message_goes_there_and_back(
    old_cli: Callable[..., Any], sqs_server: SqsServer, sqs_queue: QueueProbe
) -> None:
    url = ("--queue-url", sqs_queue.url)

    sent = old_cli("send-message", *url, "--message-body", "from a shell & more")
    received = old_cli("receive-message", *url, "--attribute-names", "All")
    [message] = received["Messages"]
    old_cli("delete-message", *url, "--receipt-handle", message["ReceiptHandle"])

    assert message["MessageId"] == sent["MessageId"]
    assert message["Body"] == "from a shell & more"
    sqs_queue.assert_deleted(body="from a shell & more")
    assert {record.protocol for record in sqs_server.requests.calls()} == {"query"}


def test_an_error_is_told(old_cli: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="NonExistentQueue"):
        old_cli("get-queue-url", "--queue-name", "none")
