"""Keeping the requests of a test run from AWS.

botocore is patched when it gets imported, so that a run without it pays nothing.  What a request
would reach is judged at the last moment, after moto and other stand-ins have had their say.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from pytest_sqsq.errors import AwsBlocked

# Module → its class that sends requests.
_SENDERS = {"botocore.endpoint": "Endpoint", "aiobotocore.endpoint": "AioEndpoint"}

# Where a request notes the operation that it was made for.
_OPERATION = "_sqsq_operation"


class Guard:
    """While installed and ``closed``, fails each botocore request to an AWS endpoint.

    ``install`` and ``remove`` are for one thread at a time; ``closed`` may be set at any time.
    """

    def __init__(self, *, closed: bool) -> None:
        self.closed = closed
        self._finder = _Finder(self._patch)
        self._patched: list[tuple[type, str, Callable[..., Any], Callable[..., Any]]] = []

    def install(self) -> None:
        """Patch what is imported, and have the rest patched when it is imported."""
        sys.meta_path.insert(0, self._finder)
        for name in _SENDERS:
            module = sys.modules.get(name)
            if module is not None:
                self._patch(module)

    def remove(self) -> None:
        """Put everything back that nobody else has changed since."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        for owner, name, original, patch in self._patched:
            if vars(owner).get(name) is patch:
                setattr(owner, name, original)
        self._patched.clear()

    def _patch(self, module: ModuleType) -> None:
        sender: type = getattr(module, _SENDERS[module.__name__])
        self._replace(sender, "_do_get_response", _noting_operation)
        self._replace(sender, "_send", self._checking)

    def _replace(
        self, owner: type, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        original = getattr(owner, name)
        patch = wrap(original)
        setattr(owner, name, patch)
        self._patched.append((owner, name, original, patch))

    # Neither wrapper awaits anything, so they serve coroutine functions as well.

    def _checking(self, send: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(send)
        def checked(endpoint: Any, request: Any) -> Any:
            if self.closed and is_aws(request.url):
                raise AwsBlocked(blocked_text(request.url, getattr(request, _OPERATION, None)))
            return send(endpoint, request)

        return checked


def _noting_operation(get_response: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(get_response)
    def noting(endpoint: Any, request: Any, operation_model: Any, context: Any) -> Any:
        service = operation_model.service_model.service_name
        setattr(request, _OPERATION, f"{service} {operation_model.name}")
        return get_response(endpoint, request, operation_model, context)

    return noting


def is_aws(url: str) -> bool:
    """Whether a URL leads to AWS, in any of its partitions."""
    host = urlsplit(url).hostname or ""
    return any(host == suffix or host.endswith(f".{suffix}") for suffix in _suffixes())


@cache
def _suffixes() -> frozenset[str]:
    from botocore.loaders import Loader as DataLoader

    partitions: Sequence[Mapping[str, Any]] = DataLoader().load_data("partitions")["partitions"]
    return frozenset(
        each["outputs"][name]
        for each in partitions
        for name in ("dnsSuffix", "dualStackDnsSuffix")
        if each["outputs"].get(name)
    )


def blocked_text(url: str, operation: str | None) -> str:
    """What the error says."""
    what = "a request" if operation is None else operation
    return (
        f"{what} would have reached AWS at {url}, which sqsq_block_aws forbids; lead the client to"
        " a server of the tests (the fixtures set AWS_ENDPOINT_URL_SQS for clients made while a"
        " test runs), or allow it with @pytest.mark.sqsq(block_aws=False)"
    )


class _Finder(MetaPathFinder):
    """Finds what the finders after it find, and has the modules of interest patched."""

    def __init__(self, on_loaded: Callable[[ModuleType], None]) -> None:
        self._on_loaded = on_loaded

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _SENDERS:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _PatchingLoader(spec.loader, self._on_loaded)
                return spec
        return None


class _PatchingLoader(Loader):
    """Loads as another loader does, gives the module back to it, and tells of it."""

    def __init__(self, loader: Loader, on_loaded: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._on_loaded = on_loaded

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._on_loaded(module)
