"""Clients that need a botocore of their own, in processes of their own.

They are the last boto3 and AWS CLI that spoke the Query protocol, and the AWS CLI of today, which
pins its botocore. ``tox -e query-clients`` installs each pair into a folder and names the folders
in SQSQ_QUERY_CLIENTS and SQSQ_AWS_CLI; without the first there are no tests here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import execnet
import pytest
from botocore.exceptions import ClientError

from pytest_sqsq import SqsServer

FOLDER = os.environ.get("SQSQ_QUERY_CLIENTS")
CLI_FOLDERS = {"query": FOLDER, "json": os.environ.get("SQSQ_AWS_CLI")}
OTHER_SIDE = Path(__file__).with_name("old_boto3.py")
collect_ignore_glob = [] if FOLDER else ["test_*.py"]


class OldClient:
    """Has the methods of a boto3 client, and calls them in the other process."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.protocol = channel.receive(timeout=30)

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        def call(**arguments: Any) -> dict[str, Any]:
            self.channel.send((operation, arguments))
            succeeded, response = self.channel.receive(timeout=30)
            if not succeeded:
                raise ClientError(response, operation)
            return response

        return call


@pytest.fixture(scope="session")
def old_process() -> Iterator[execnet.Gateway]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(FOLDER))
        gateway = execnet.makegateway("popen")
    yield gateway
    gateway.exit()


@pytest.fixture
def old_client(old_process: execnet.Gateway, sqs_server: SqsServer) -> Iterator[OldClient]:
    channel = old_process.remote_exec(OTHER_SIDE.read_text(encoding="utf-8"))
    channel.send(
        {
            "endpoint_url": sqs_server.url,
            "region_name": "us-east-1",
            "aws_access_key_id": "testing",
            "aws_secret_access_key": "testing",
        }
    )
    yield OldClient(channel)
    channel.close()


@pytest.fixture(params=[protocol for protocol, folder in CLI_FOLDERS.items() if folder])
def cli_protocol(request: pytest.FixtureRequest) -> str:
    """The protocol that the AWS CLI of this test speaks."""
    return str(request.param)


@pytest.fixture
def aws_cli(sqs_server: SqsServer, cli_protocol: str) -> Callable[..., Any]:
    """Call ``aws sqs`` with arguments; returns its answer, parsed, and raises its error."""
    folder = str(CLI_FOLDERS[cli_protocol])

    def call(*arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "awscli", "--endpoint-url", sqs_server.url, "sqs", *arguments],
            env={**os.environ, **sqs_server.environment, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout) if done.stdout else None

    return call
