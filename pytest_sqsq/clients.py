"""boto3 clients of a server, deaf to the configuration of whoever runs the tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from pytest_sqsq.environment import DUMMY_KEY

if TYPE_CHECKING:
    import boto3
    from types_boto3_sqs import SQSClient, SQSServiceResource


@cache
def session() -> boto3.Session:
    """A boto3 session that reads neither files nor variables of whoever runs the tests.

    One for all servers: loading the model of SQS takes most of the time that a client takes.
    """
    import boto3
    from botocore.session import Session

    # Each variable is (name in files, name in the environment, default, conversion).
    variables = {
        name: (in_files, None, default, conversion)
        for name, (in_files, _, default, conversion) in Session.SESSION_VARIABLES.items()
    }
    nowhere = (None, None, os.devnull, None)
    variables |= {"config_file": nowhere, "credentials_file": nowhere}
    return boto3.Session(botocore_session=Session(session_vars=variables))


def client(url: str, region: str, arguments: Mapping[str, Any]) -> SQSClient:
    """An SQS client of the server at ``url``; ``arguments`` of ``boto3.client`` win."""
    with _making:
        made: SQSClient = session().client("sqs", **_filled_in(url, region, arguments))
    return made


def resource(url: str, region: str, arguments: Mapping[str, Any]) -> SQSServiceResource:
    """An SQS resource of the server at ``url``; ``arguments`` of ``boto3.resource`` win."""
    with _making:
        made: SQSServiceResource = session().resource("sqs", **_filled_in(url, region, arguments))
    return made


# Sessions are not safe to use from several threads; clients are.
_making = Lock()


def _filled_in(url: str, region: str, given: Mapping[str, Any]) -> dict[str, Any]:
    from botocore.config import Config

    # No proxy of the process stands between a test and its own machine.
    config = Config(proxies={}, connect_timeout=5, tcp_keepalive=True)
    if given.get("config") is not None:
        config = config.merge(given["config"])
    defaults = {
        "endpoint_url": url,
        "region_name": region,
        "aws_access_key_id": DUMMY_KEY,
        "aws_secret_access_key": DUMMY_KEY,
    }
    return {**defaults, **given, "config": config}
