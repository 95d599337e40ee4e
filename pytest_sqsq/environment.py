"""The environment variables that lead an AWS SDK to a server, and to nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

DUMMY_KEY = "testing"

_LOOPBACK = ("127.0.0.1", "localhost")


_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - how to reach


class Endpoint(NamedTuple):
    """Where the server of the run listens; ``environment`` leads a process to it."""

    url: str
    port: int
    environment: Mapping[str, str]


def url_of(host: str, port: int) -> str:
    """The URL under which this machine reaches what listens on an address."""
    host = _WILDCARDS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def endpoint_variables(url: str) -> dict[str, str | None]:
    """What sends SQS to ``url`` and leaves other services alone; ``None`` means unset."""
    return {
        "AWS_ENDPOINT_URL_SQS": url,
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": None,
        **_no_proxy(os.environ),
    }


def variables(url: str, region: str) -> dict[str, str | None]:
    """What an SDK needs to find ``url`` and to read nobody's configuration; ``None`` is unset."""
    return {
        **endpoint_variables(url),
        "AWS_ACCESS_KEY_ID": DUMMY_KEY,
        "AWS_SECRET_ACCESS_KEY": DUMMY_KEY,
        "AWS_SESSION_TOKEN": None,
        "AWS_PROFILE": None,
        "AWS_DEFAULT_PROFILE": None,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _no_proxy(environment: Mapping[str, str]) -> dict[str, str | None]:
    # Both spellings are in use, and which of them a client prefers differs.
    present = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    hosts = [host for host in present.split(",") if host.strip()]
    hosts += [host for host in _LOOPBACK if host not in hosts]
    return dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(hosts))


def apply(changes: Mapping[str, str | None]) -> dict[str, str | None]:
    """Set and unset variables of this process; returns the changes that undo it."""
    undo = {name: os.environ.get(name) for name in changes}
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return undo
