from __future__ import annotations

import asyncio
import datetime as dt
from contextlib import asynccontextmanager
from typing import Any

import aioboto3
import pytest
import pytest_asyncio
from aiobotocore.session import get_session
from botocore.exceptions import ClientError

# Real seconds; a passing test never waits this long.
LONG = 30.0

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def aiobotocore_client():
    async with get_session().create_client("sqs") as client:
        yield client


@asynccontextmanager
async def aioboto3_client():
    async with aioboto3.Session().client("sqs") as client:
        yield client


@pytest_asyncio.fixture(params=[aiobotocore_client, aioboto3_client])
async def sqs(request: Any, sqs_server: Any):
    """A client as an application makes it: it finds the server by the environment."""
    async with request.param() as client:
        yield client


class Consumer:
    def __init__(self, client: Any, url: str, handle: Any) -> None:
        self.client, self.url, self.handle = client, url, handle

    async def run(self) -> None:
        while True:
            answer = await self.client.receive_message(
                QueueUrl=self.url,
                WaitTimeSeconds=20,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
            for message in answer.get("Messages", []):
                try:
                    await self.handle(message)
                except ValueError:
                    continue
                await self.client.delete_message(
                    QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"]
                )


@pytest_asyncio.fixture
async def consume(sqs: Any, sqs_queue: Any):
    tasks = []

    def start(handle: Any) -> None:
        tasks.append(asyncio.create_task(Consumer(sqs, sqs_queue.url, handle).run()))

    yield start
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, asyncio.CancelledError)


async def test_every_kind_of_call_works(sqs: Any, sqs_server: Any) -> None:
    assert sqs.meta.endpoint_url == sqs_server.url
    url = (await sqs.create_queue(QueueName="orders"))["QueueUrl"]
    await sqs.send_message(QueueUrl=url, MessageBody="a", DelaySeconds=0)
    entries = [{"Id": body, "MessageBody": body} for body in "bc"]
    assert len((await sqs.send_message_batch(QueueUrl=url, Entries=entries))["Successful"]) == 2
    messages = (await sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10))["Messages"]
    assert [message["Body"] for message in messages] == ["a", "b", "c"]
    for message in messages:
        await sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    sqs_server.queue("orders").assert_empty()
    with pytest.raises(ClientError, match="The specified queue does not exist"):
        await sqs.purge_queue(QueueUrl=url + "x")
    assert {record.transport for record in sqs_server.requests} == {"http"}


async def test_a_long_poll_is_woken_by_a_send_from_the_same_loop(
    sqs: Any, sqs_server: Any, sqs_queue: Any
) -> None:
    poll = asyncio.create_task(sqs.receive_message(QueueUrl=sqs_queue.url, WaitTimeSeconds=20))
    await sqs_server.aio.wait_for_pollers(1, sqs_queue, timeout=LONG)
    await sqs.send_message(QueueUrl=sqs_queue.url, MessageBody="a")
    answer = await asyncio.wait_for(poll, LONG)
    assert [message["Body"] for message in answer["Messages"]] == ["a"]


@pytest.mark.sqsq(clock="frozen")
async def test_many_polls_of_one_loop_are_ended_by_an_advance(
    sqs: Any, sqs_server: Any, sqs_queue: Any
) -> None:
    polls = [
        asyncio.create_task(sqs.receive_message(QueueUrl=sqs_queue.url, WaitTimeSeconds=20))
        for _ in range(8)
    ]
    await sqs_server.aio.wait_for_pollers(8, timeout=LONG)
    await sqs_server.aio.advance(20)
    answers = await asyncio.wait_for(asyncio.gather(*polls), LONG)
    assert [answer.get("Messages", []) for answer in answers] == [[]] * 8


@pytest.mark.sqsq(clock="frozen")
async def test_a_cancelled_poll_takes_no_message(sqs: Any, sqs_server: Any, sqs_queue: Any) -> None:
    poll = asyncio.create_task(sqs.receive_message(QueueUrl=sqs_queue.url, WaitTimeSeconds=20))
    await sqs_server.aio.wait_for_pollers(1, timeout=LONG)
    poll.cancel()
    with pytest.raises(asyncio.CancelledError):
        await poll
    sqs_queue.send("a")
    answer = await sqs.receive_message(QueueUrl=sqs_queue.url)
    assert [message["Body"] for message in answer["Messages"]] == ["a"]


@pytest.mark.sqsq(clock="frozen")
async def test_a_consumer_retries_while_time_jumps(
    sqs_server: Any, sqs_queue: Any, consume: Any
) -> None:
    attempts: list[Any] = []

    async def fail_twice(message: Any) -> None:
        attempts.append(sqs_server.now)
        if len(attempts) < 3:
            raise ValueError

    consume(fail_twice)
    sqs_queue.send("a")
    await sqs_server.aio.run_until(lambda: not sqs_queue.messages())
    assert attempts[2] - attempts[0] == dt.timedelta(seconds=60)
    sqs_queue.assert_received(body="a", times=3)


async def test_idle_consumers_are_known(sqs_server: Any, sqs_queue: Any, consume: Any) -> None:
    handled = []

    async def handle(message: Any) -> None:
        handled.append(message["Body"])

    consume(handle)
    for number in range(20):
        sqs_queue.send(str(number))
    await sqs_server.aio.wait_until_empty(sqs_queue, timeout=LONG)
    await sqs_server.aio.wait_idle(timeout=LONG)
    assert handled == [str(number) for number in range(20)]


@pytest.mark.sqsq(clock="frozen")
async def test_a_handler_of_drain_may_use_the_client_of_the_test(
    sqs: Any, sqs_server: Any, sqs_queue: Any
) -> None:
    other = sqs_server.create_queue("other")
    sqs_queue.send("a")

    async def forward(message: Any) -> None:
        await sqs.send_message(QueueUrl=other.url, MessageBody=message.body)

    report = await sqs_server.aio.drain(sqs_queue, forward)
    assert (report.deleted, report.failed) == (1, 0)
    other.assert_contains(body="a")
