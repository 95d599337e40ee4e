"""From a whole request to a whole answer: decode, perform, encode, log."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pytest_sqsq.actions import ActionContext, perform
from pytest_sqsq.actions.addresses import key_of_url
from pytest_sqsq.clock import monotonic
from pytest_sqsq.errors import InternalFailure, SqsError
from pytest_sqsq.gateway.fault_effects import Attempt, Result
from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.gateway.requests import RequestLog, RequestRecord
from pytest_sqsq.models import QueueKey
from pytest_sqsq.protocol import (
    Call,
    HttpRequest,
    HttpResponse,
    ProtocolFault,
    decode,
    encode_error,
    encode_result,
)

if TYPE_CHECKING:
    from pytest_sqsq.engine import Broker, Waiter
    from pytest_sqsq.gateway.faults import Faults

# Real seconds between two looks at whether a parked client is still there, which free its thread.
# Who makes messages available asks for itself before it hands one to a client.
ALIVE_CHECK_SECONDS = 1.0

KEPT_FAILURES = 100
KEPT_HOSTS = 100

_HOST = re.compile(r"[A-Za-z0-9.:\-\[\]_]{1,255}")
_ACCOUNT = re.compile(r"[0-9]{12}")

# Not from the seeded generator: request ids differ between runs, as AWS's do.
_RUN = str(uuid4())[:24]
_numbers = count(1)


def new_request_id() -> str:
    """An id in the form of a UUID; random for the process, then counted."""
    return f"{_RUN}{next(_numbers):012x}"


class Gateway:
    """Answers requests on one broker.

    The caller's account is a 12-digit access key id, else ``account_id``; its region that of the
    credential scope, else ``region``.  Queue URLs in answers begin with ``http://`` and the
    request's Host header, or with ``base_url`` where that is missing or no host.  ``authorize``
    may refuse a decoded call by raising an :class:`SqsError`.  ``is_known`` tells whether a queue
    URL was handed out since the last reset; without it none counts as stale.  ``faults`` are what
    is planned to go wrong.

    ``internal_failures`` keeps the latest exceptions that were answered with InternalFailure.
    """

    def __init__(
        self,
        broker: Broker,
        gate: RequestGate,
        log: RequestLog,
        *,
        region: str = "us-east-1",
        account_id: str = "000000000000",
        cooldowns: bool = False,
        base_url: str = "http://localhost",
        authorize: Callable[[HttpRequest, Call], None] | None = None,
        is_known: Callable[[QueueKey], bool] | None = None,
        faults: Faults | None = None,
    ) -> None:
        self._broker = broker
        self.log = log
        self.internal_failures: deque[Exception] = deque(maxlen=KEPT_FAILURES)
        self._gate = gate
        self._clock = broker.clock
        self._region = region
        self._account_id = account_id
        self._cooldowns = cooldowns
        self._base_url = base_url
        self._authorize = authorize
        self._is_known = is_known
        self._faults = faults
        self._base_urls: dict[str, str] = {}
        self._retired = False

    def handle(self, request: HttpRequest) -> HttpResponse:
        """The answer to ``request``; never raises.

        Called inside ``gate.request()``; leaves the gate while a long poll is parked.  The
        request is in the log before this returns.
        """
        at_ms = self._clock.now_ms
        started = monotonic()
        exchange = _Exchange(self._broker, self._gate)
        response = self._answer(request, exchange)
        if not self._retired:
            status = 0 if response.cut == "unanswered" else response.status
            self._record(request, exchange, status, at_ms, (monotonic() - started) * 1000)
        return response

    def retire(self) -> None:
        """Log no more: what is still answered belongs to a world that is over."""
        self._retired = True

    def take_internal_failures(self) -> list[Exception]:
        """The exceptions answered with InternalFailure since the last call, oldest first."""
        failures: list[Exception] = []
        while self.internal_failures:
            failures.append(self.internal_failures.popleft())
        return failures

    def _answer(self, request: HttpRequest, exchange: _Exchange) -> HttpResponse:
        request_id = new_request_id()
        try:
            exchange.call = call = decode(request)
            exchange.context = context = self._context(request, exchange)
            if self._authorize is not None:
                self._authorize(request, call)
            faults = self._faults
            result: Result
            if faults is None or not faults.active:
                result = perform(context, call.action, call.parameters)
            else:
                result = self._carry_out(exchange, context, faults)
            response = encode_result(call, result, request_id)
        except ProtocolFault as fault:
            exchange.call, exchange.error = fault.call, fault.error
            response = fault.response(request_id)
        except SqsError as error:
            exchange.error = error
            response = encode_error(exchange.call.protocol, error, request_id)
        except Exception as failure:  # noqa: BLE001 - the client gets an answer, the test the failure
            self.internal_failures.append(failure)
            exchange.error = InternalFailure(f"The request has failed with {failure!r:.500}")
            response = encode_error(exchange.call.protocol, exchange.error, request_id)
        if exchange.close_connection:
            response.close = True
        if exchange.attempt is not None:
            response.cut = exchange.attempt.cut
        return response

    def _carry_out(self, exchange: _Exchange, context: ActionContext, faults: Faults) -> Result:
        call = exchange.call
        exchange.attempt = attempt = Attempt(
            call.action,
            call.parameters,
            _queue_of(context, call.parameters),
            partial(perform, context, call.action, call.parameters),
            context.is_alive,
        )
        context.failing = attempt.failing
        return faults.carry_out(attempt, context)

    def _context(self, request: HttpRequest, exchange: _Exchange) -> ActionContext:
        call = exchange.call
        access_key = call.access_key
        return ActionContext(
            self._broker,
            access_key if access_key and _ACCOUNT.fullmatch(access_key) else self._account_id,
            call.region or self._region,
            self._base_url_of(request.headers.get("host")),
            exchange.park,
            request.is_alive,
            call.trace_header,
            self._cooldowns,
            call.protocol,
        )

    def _base_url_of(self, host: str | None) -> str:
        if host is None:
            return self._base_url
        known = self._base_urls.get(host)
        if known is None:
            known = f"http://{host}" if _HOST.fullmatch(host) else self._base_url
            if len(self._base_urls) < KEPT_HOSTS:
                self._base_urls[host] = known
        return known

    def _record(
        self,
        request: HttpRequest,
        exchange: _Exchange,
        status: int,
        at_ms: int,
        duration_ms: float,
    ) -> None:
        call, error = exchange.call, exchange.error
        context = exchange.context or self._context(request, exchange)
        key = _queue_of(context, call.parameters)
        record = RequestRecord(
            call.action or None,
            None if key is None else key.name,
            context.account_id if key is None else key.account_id,
            context.region if key is None else key.region,
            call.protocol,
            call.parameters,
            status,
            error.query_code if error is not None and status else None,
            at_ms,
            duration_ms,
            request.client_address,
            request.transport,
            self._is_stale(key, call.parameters),
        )
        self.log.append(record, len(request.body) + len(request.query_string))

    def _is_stale(self, key: QueueKey | None, parameters: Mapping[str, Any]) -> bool:
        if self._is_known is None or key is None or "QueueUrl" not in parameters:
            return False
        return not self._is_known(key)


class _Exchange:
    """One request on its way through the gateway: what is known of it, and how it waits."""

    __slots__ = ("_broker", "_gate", "attempt", "call", "close_connection", "context", "error")

    def __init__(self, broker: Broker, gate: RequestGate) -> None:
        self._broker = broker
        self._gate = gate
        self.call = Call("", {}, "json")
        self.context: ActionContext | None = None
        self.error: SqsError | None = None
        self.attempt: Attempt | None = None  # only where faults are planned
        self.close_connection = False

    def park(self, waiter: Waiter) -> None:
        """Block until the poll is answered, its real time is up, or its client has gone."""
        with self._gate.parked() as parking:
            waiter.on_resolved = parking.wake
            parking.leave(lambda: waiter.answered)
            _wait(waiter)
        if not waiter.resolved:
            self._broker.cancel_poll(waiter)
        if waiter.close_connection:
            self.close_connection = True


def _wait(waiter: Waiter) -> None:
    deadline = monotonic() + waiter.real_seconds
    while (remaining := deadline - monotonic()) > 0:
        if waiter.wait(min(remaining, ALIVE_CHECK_SECONDS)) or not waiter.is_alive():
            return


def _queue_of(context: ActionContext, parameters: Mapping[str, Any]) -> QueueKey | None:
    """The queue a request is about, by what its parameters say, whether it exists or not."""
    if url := parameters.get("QueueUrl"):
        return key_of_url(context, url)
    if name := parameters.get("QueueName"):
        owner = parameters.get("QueueOwnerAWSAccountId") or context.account_id
        return QueueKey(owner, context.region, name)
    if arn := parameters.get("SourceArn"):
        return QueueKey.from_arn(arn)
    return None
