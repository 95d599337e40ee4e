from __future__ import annotations

import pytest


def test_an_unused_plugin_imports_nothing_heavy(pytester: pytest.Pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import sys

        def test_it():
            heavy = {"boto3", "botocore", "werkzeug", "redis", "fakeredis", "xmltodict"}
            assert not heavy & sys.modules.keys()
            ours = {name.split(".")[1] for name in sys.modules if name.startswith("pytest_sqsq.")}
            assert "plugin" in ours
            assert not ours & {"engine", "protocol", "actions", "gateway", "http", "testing"}
        """
    )
    pytester.runpytest_subprocess("-p", "pytest_sqsq.plugin").assert_outcomes(passed=1)


def test_every_exported_name_is_there() -> None:
    import pytest_sqsq

    assert {name: getattr(pytest_sqsq, name).__name__ for name in pytest_sqsq.__all__} == {
        name: name for name in pytest_sqsq.__all__
    }
    assert set(pytest_sqsq.__all__) <= set(dir(pytest_sqsq))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pytest_sqsq.nothing
