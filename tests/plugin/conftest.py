from __future__ import annotations

import boto3
import pytest

from pytest_sqsq import SqsServer

# pytester forgets what inner runs import; this way all that a server needs is loaded once.
with SqsServer():
    pass


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Runs a test file in a run of its own, with further options and files."""
    # Only what the inner runs are about; the plugins of the outer one have options of their own.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)

    def run_file(source: str, *arguments: str, **files: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=source, **files)
        return pytester.runpytest("-p", "pytest_sqsq.plugin", "-W", "error", *arguments)

    return run_file
