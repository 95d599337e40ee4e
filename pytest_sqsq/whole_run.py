"""What belongs to a whole test run: its options, its server, its guard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_sqsq.options import plugin_options

if TYPE_CHECKING:
    from pytest_sqsq.guard import Guard
    from pytest_sqsq.shared import SharedServer


class Run:
    """One test run: the options given for all of it, and its server."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._shared: SharedServer | None = None
        self._undo: Mapping[str, str | None] = {}
        self.give(given)
        self.guard: Guard | None = None
        self.refused: pytest.UsageError | None = None  # why it cannot begin
        self.failures = 0  # tests that did not come to their end
        self.made = 0  # servers that tests have made for themselves

    def give(self, given: Mapping[str, Any]) -> None:
        """Take these options; what listens already goes on to do so."""
        self.given = given
        self.options = plugin_options(given)
        if self._shared is not None:
            self._shared.options = self.options

    @property
    def shared(self) -> SharedServer:
        if self._shared is None:
            from pytest_sqsq.shared import SharedServer

            self._shared = SharedServer(self.options)
        return self._shared

    def enter_session(self) -> None:
        """Set the environment before anything is collected, and listen there, if not yet so."""
        if self._undo:
            return
        from pytest_sqsq.environment import apply, variables
        from pytest_sqsq.errors import ServerStartError

        try:
            url = self.shared.url
        except ServerStartError as error:
            raise pytest.UsageError(f"sqsq: {error}") from None
        self._undo = apply(variables(url, self.options["region"]))

    def leave_session(self) -> None:
        """Put the environment back, and stop listening."""
        if self._undo:
            from pytest_sqsq.environment import apply

            apply(self._undo)
            self._undo = {}
        if self._shared is not None:
            self._shared.stop()

    def install_guard(self) -> None:
        """Be ready to keep requests from AWS, in tests or altogether."""
        if self.guard is None:
            from pytest_sqsq.guard import Guard

            self.guard = Guard(closed=self.options["block_aws"])
            self.guard.install()

    def close(self) -> None:
        if self.guard is not None:
            self.guard.remove()
        self.leave_session()
