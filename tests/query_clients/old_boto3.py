"""Runs in the process of the old clients: calls what comes through the channel, answers into it."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.exceptions import ClientError


def make_calls(channel: Any) -> None:
    client = boto3.client("sqs", **channel.receive())
    channel.send(client.meta.service_model.metadata["protocol"])
    for operation, arguments in channel:
        try:
            channel.send((True, getattr(client, operation)(**arguments)))
        except ClientError as error:
            channel.send((False, error.response))


if __name__ == "__channelexec__":
    # execnet puts the channel among the globals of the source that it is given.
    make_calls(globals()["channel"])
