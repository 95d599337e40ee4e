"""A queue as a test sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, Unpack

from pytest_sqsq.actions.attributes import reported_attributes
from pytest_sqsq.engine import Queue
from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.models import Event, MessageState, MessageView, QueueKey, QueueStatistics
from pytest_sqsq.testing import acting, bodies, lambda_events, waits
from pytest_sqsq.testing.drain import Drain, DrainReport, Handler
from pytest_sqsq.testing.failures import counts_text
from pytest_sqsq.testing.journal_assertions import JournalAssertions
from pytest_sqsq.testing.lambda_events import LambdaHandler, LambdaInvocation
from pytest_sqsq.testing.looks import Sample, take_look
from pytest_sqsq.testing.matching import BodyMatcher, Criteria
from pytest_sqsq.testing.state_assertions import StateAssertions, miscount_text
from pytest_sqsq.testing.world import World


class QueueProbe(StateAssertions, JournalAssertions):
    """A live view of one queue, by its account, region and name.

    Looking changes nothing: before each look everything happens that is due by now, and that is
    all.  ``send``, ``receive``, ``delete``, ``purge``, ``invoke_lambda`` and ``drain`` act as
    the API does, with its checks, and raise the ``SqsError`` that it would answer with.  All
    raise ``QueueDoesNotExist`` while there is no queue of the name.
    """

    def __init__(self, world: World, key: QueueKey) -> None:
        self._world = world
        self.key = key

    def __repr__(self) -> str:
        if self._world.broker.find_queue(self.key) is None:
            return f"<QueueProbe {self.name!r}, no such queue>"
        now = self.statistics
        return f"<QueueProbe {self.name!r}: {counts_text(now.visible, now.in_flight, now.delayed)}>"

    # What it is

    @property
    def name(self) -> str:
        """The queue's name, ``.fifo`` included."""
        return self.key.name

    @property
    def arn(self) -> str:
        """The queue's ARN, as redrive policies name it."""
        return self.key.arn

    @property
    def account_id(self) -> str:
        """The 12 digits of the account that owns the queue."""
        return self.key.account_id

    @property
    def region(self) -> str:
        """The region that the queue is in."""
        return self.key.region

    @property
    def url(self) -> str:
        """What clients of this server give as ``QueueUrl``."""
        return self._world.queue_url(self.key)

    @property
    def attributes(self) -> Mapping[str, str]:
        """What GetQueueAttributes answers for ``All``."""
        return reported_attributes(self._world.broker, self.internals)

    @property
    def tags(self) -> Mapping[str, str]:
        """What ListQueueTags answers."""
        queue = self.internals
        with self._world.broker.entry(queue):
            return dict(queue.tags)

    @property
    def statistics(self) -> QueueStatistics:
        """Gauges and totals at this instant.  O(1) but for what is due."""
        queue = self.internals
        with self._world.broker.entry(queue):
            return statistics_of(queue)

    @property
    def internals(self) -> Queue:
        """The engine's queue itself; ``internals.log`` is its message log."""
        return self._world.broker.get_queue(self.key)

    # Looking

    def messages(self, state: MessageState | None = None) -> tuple[MessageView, ...]:
        """All messages, or those in one state, in order of arrival.  O(n)."""
        criteria = Criteria(state=state)
        look = take_look(self._world, self.key, criteria)
        return tuple(view for view in look.views if criteria.matches(view))

    def message(
        self,
        message_id: str | None = None,
        *,
        body: BodyMatcher | None = None,
        json: Any = None,
        exact: bool = False,
    ) -> MessageView:
        """The message with this id, or the only one that matches.

        Raises ``AssertionError`` if there is none, or more than one, and ``TypeError`` for an id
        together with what the message is like.  O(n).
        """
        __tracebackhide__ = True
        if message_id is None:
            return self.assert_contains(body, json=json, exact=exact)
        if body is not None or json is not None:
            raise TypeError("message takes an id, or what the message is like, not both")
        criteria = Criteria(message_id=message_id)
        look = take_look(self._world, self.key, criteria)
        if message_id not in look.by_id:
            raise AssertionError(miscount_text(self._world, criteria, look, 1, ()))
        return look.by_id[message_id]

    def history(
        self,
        message: MessageView | str | None = None,
        *,
        body: BodyMatcher | None = None,
        json: Any = None,
        exact: bool = False,
    ) -> tuple[Event, ...]:
        """All that happened here to a message, or to all that match, oldest first.

        ``message`` is a view or a message id; messages that are gone are found too.  Raises
        ``JournalForgotten`` where the journal has dropped a part of it.
        """
        look = take_look(self._world, self.key, Sample())
        message_id = message.message_id if isinstance(message, MessageView) else message
        criteria = Criteria(body=body, json=json, exact=exact)
        return look.history(message_id, criteria.accepts_body)

    @property
    def sent_messages(self) -> tuple[MessageView, ...]:
        """All messages that were sent to this queue, in order.

        Those that are gone are shown as they last stood.  Raises ``JournalForgotten`` where the
        journal has dropped some.
        """
        look = take_look(self._world, self.key)
        look.require_whole_journal("sent_messages")
        return tuple(
            look.view_of(story) for story in look.stories.values() if story.of_kind("sent")
        )

    # Acting as the API does

    def send(self, body: str, **options: Unpack[acting.SendOptions]) -> MessageView:
        """SendMessage, with the parameters of boto3's ``send_message``.

        Returns the message as it stands right after; of a duplicate on a FIFO queue, the
        original one.  Raises ``TypeError`` for parameters that SendMessage does not take.
        """
        return acting.send(self._world, self.key, body, options)

    def send_sns(
        self,
        message: str,
        *,
        topic_arn: str | None = None,
        subject: str | None = None,
        message_attributes: Mapping[str, Any] | None = None,
        raw: bool = False,
        **options: Unpack[acting.SendOptions],
    ) -> MessageView:
        """Send ``message`` as a topic would deliver it; ``raw`` as raw message delivery does.

        ``message_attributes`` are plain values by name: text, bytes, numbers, or a list of such.
        Raw messages consist of the message and its attributes, so that topic and subject do not
        show.  Other arguments are those of ``send``, for a FIFO queue its group and the like.
        """
        if not isinstance(message, str):
            raise TypeError(f"a notification's message is text, not {message!r}")
        attributes = message_attributes or {}
        if raw:
            if attributes:
                options["MessageAttributes"] = bodies.sqs_attributes(attributes)
            return self.send(message, **options)
        body = bodies.sns_body(
            self.key,
            self._world.clock.now,
            message,
            nonce=self.statistics.sent,
            topic_arn=topic_arn,
            subject=subject,
            attributes=attributes,
        )
        return self.send(body, **options)

    def send_s3_event(
        self,
        bucket: str,
        key: str,
        *,
        event_name: str = "ObjectCreated:Put",
        size: int = 1024,
        etag: str | None = None,
        version_id: str | None = None,
        **options: Unpack[acting.SendOptions],
    ) -> MessageView:
        """Send the notification of a change to the object ``key`` of ``bucket``.

        ``event_name`` goes with or without ``s3:``; ``s3:TestEvent`` is the message that S3 sends
        when notifications are set up.  ``size`` is in bytes; removals carry neither it nor the
        ``etag``.  Other arguments are those of ``send``.
        """
        body = bodies.s3_body(
            self.key,
            self._world.clock.now,
            bucket,
            key,
            nonce=self.statistics.sent,
            event_name=event_name,
            size=size,
            etag=etag,
            version_id=version_id,
        )
        return self.send(body, **options)

    def send_eventbridge(
        self,
        detail: Mapping[str, Any],
        *,
        source: str,
        detail_type: str,
        resources: Sequence[str] = (),
        **options: Unpack[acting.SendOptions],
    ) -> MessageView:
        """Send an event as an EventBridge rule hands it to a queue.

        ``detail`` is what the event is about, a JSON object.  Other arguments are those of
        ``send``, for a FIFO queue its group.
        """
        if not isinstance(detail, Mapping):
            raise TypeError(f"the detail of an event is a JSON object, not {detail!r}")
        body = bodies.eventbridge_body(
            self.key,
            self._world.clock.now,
            detail,
            nonce=self.statistics.sent,
            source=source,
            detail_type=detail_type,
            resources=resources,
        )
        return self.send(body, **options)

    def receive(
        self, max_messages: int = 1, visibility_timeout: int | None = None
    ) -> tuple[MessageView, ...]:
        """ReceiveMessage as a short poll; the views carry the receipt handles.

        At most 10 messages; ``visibility_timeout`` in seconds, else the queue's own.
        """
        batch = acting.receive(self._world, self.key, max_messages, visibility_timeout)
        return tuple(received.view for received in batch)

    def delete(self, message: MessageView | str) -> None:
        """DeleteMessage, by a view of a message in flight or by a receipt handle."""
        handle = message.receipt_handle if isinstance(message, MessageView) else message
        if handle is not None and not isinstance(handle, str):
            raise TypeError(f"delete takes a view or a receipt handle, not {message!r}")
        if handle is None:
            raise ValueError(
                "this view has no receipt handle: its message was not in flight; delete what"
                " receive() returns"
            )
        acting.act(self._world, self.key, "DeleteMessage", ReceiptHandle=handle)

    def purge(self) -> None:
        """PurgeQueue."""
        acting.act(self._world, self.key, "PurgeQueue")

    # Consuming

    def invoke_lambda(
        self,
        handler: LambdaHandler,
        *,
        batch_size: int = 10,
        context: object = None,
        raise_errors: bool = True,
        report_batch_item_failures: bool = True,
    ) -> LambdaInvocation:
        """Hand one batch to a Lambda function, as its event source mapping does.

        Messages it fails come back when their visibility timeout ends.  With nothing to deliver
        the handler is not called.  What it raises leaves the batch in flight and is raised
        again, unless ``raise_errors`` is false.  ``ValueError`` for a batch size AWS refuses.
        """
        __tracebackhide__ = True
        return lambda_events.invoke(
            self._world,
            self.key,
            handler,
            batch_size=batch_size,
            context=context,
            raise_errors=raise_errors,
            report_batch_item_failures=report_batch_item_failures,
        )

    def drain(
        self,
        handler: Handler,
        *,
        until: Literal["empty"] | timedelta | int = "empty",
        advance: bool = True,
        lambda_events: bool = False,
        batch_size: int | None = None,
        context: object = None,
        raise_errors: bool = False,
        report_batch_item_failures: bool | None = None,
    ) -> DrainReport:
        """Work the queue off, advancing the clock over timeouts and delays.

        The handler gets a ``MessageView``: returning deletes the message, raising leaves it to
        its visibility timeout.  With ``lambda_events`` it gets event and context, and the
        arguments of ``invoke_lambda`` may be given, with the same defaults.  ``until`` ends the
        drain when no message is left in any state, after a span of virtual time, or after that
        many deletions; ``WaitTimeout`` if so many cannot be had.  ``advance=False`` handles only
        what can be delivered now.  ``ClockModeError`` for ``advance`` in system mode.
        """
        __tracebackhide__ = True
        return Drain(
            self._world,
            self.key,
            handler,
            until=until,
            advance=advance,
            lambda_events=lambda_events,
            batch_size=batch_size,
            context=context,
            raise_errors=raise_errors,
            report_batch_item_failures=report_batch_item_failures,
        ).run()

    # Waiting

    def wait_for(
        self,
        body: BodyMatcher | None = None,
        *,
        json: Any = None,
        exact: bool = False,
        count: int = 1,
        state: MessageState | None = None,
        timeout: float = waits.DEFAULT_TIMEOUT,
    ) -> tuple[MessageView, ...]:
        """Wait until at least ``count`` matching messages are there, 0 for none; returns them."""
        __tracebackhide__ = True
        return waits.wait_for(
            self._world,
            self.key,
            body=body,
            json=json,
            exact=exact,
            count=count,
            state=state,
            timeout=timeout,
        )

    def wait_until_empty(self, timeout: float = waits.DEFAULT_TIMEOUT) -> None:
        """Wait until there is no message in any state."""
        __tracebackhide__ = True
        waits.wait_until_empty(self._world, self.key, timeout)
