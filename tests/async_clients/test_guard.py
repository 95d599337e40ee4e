from __future__ import annotations

import aioboto3
import pytest
from aiobotocore.config import AioConfig

from pytest_sqsq import AwsBlocked

pytestmark = pytest.mark.asyncio


@pytest.mark.sqsq(block_aws=True)
@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
async def test_a_request_to_aws_is_blocked_and_not_retried(sqs_server, mode) -> None:
    config = AioConfig(retries={"mode": mode, "max_attempts": 3})
    attempts = []
    async with aioboto3.Session().client("s3", config=config) as s3:
        s3.meta.events.register("before-send", lambda **_: attempts.append(None))
        with pytest.raises(AwsBlocked, match=r"^s3 ListBuckets would have reached AWS at https://"):
            await s3.list_buckets()
    assert len(attempts) == 1


@pytest.mark.sqsq(block_aws=True)
async def test_the_server_of_the_test_is_reached(sqs_server) -> None:
    async with aioboto3.Session().client("sqs") as sqs:
        await sqs.create_queue(QueueName="orders")
    assert [queue.name for queue in sqs_server.queues] == ["orders"]
