"""The errors of the project: those that travel on the wire, and those that a test sees.

A wire error is an :class:`SqsError` subclass.  It carries what both protocols need (shape,
query code, status, namespace), so that a codec never looks at texts and an action never looks
at status codes.  Texts that more than one place needs are written once, as class methods here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

Namespace = Literal["com.amazonaws.sqs", "com.amazon.coral.service"]

SQS: Namespace = "com.amazonaws.sqs"
CORAL: Namespace = "com.amazon.coral.service"


class SqsError(Exception):
    """An error answer of the service; one subclass for each shape.

    ``shape`` is the name after ``#`` in the JSON ``__type``; ``query_code`` the code of the XML
    body and of the ``x-amzn-query-error`` header; ``status`` the HTTP status, the same in both
    protocols; ``fault`` says who is to blame, as in the XML ``Type``.
    """

    shape: ClassVar[str]
    query_code: ClassVar[str]
    status: ClassVar[int] = 400
    namespace: ClassVar[Namespace] = SQS
    fault: ClassVar[Literal["Sender", "Receiver"]] = "Sender"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def query_message(self) -> str:
        """The text in the Query protocol, which differs for one error only."""
        return self.message


class QueueDoesNotExist(SqsError):
    shape = "QueueDoesNotExist"
    query_code = "AWS.SimpleQueueService.NonExistentQueue"

    def __init__(self) -> None:
        super().__init__("The specified queue does not exist.")

    @property
    def query_message(self) -> str:
        return "The specified queue does not exist for this wsdl version."


class QueueNameExists(SqsError):
    shape = "QueueNameExists"
    query_code = "QueueAlreadyExists"

    def __init__(self, attribute: str) -> None:
        super().__init__(
            "A queue already exists with the same name and a different value"
            f" for attribute {attribute}"
        )
        self.attribute = attribute


class QueueDeletedRecently(SqsError):
    shape = "QueueDeletedRecently"
    query_code = "AWS.SimpleQueueService.QueueDeletedRecently"

    def __init__(self) -> None:
        super().__init__(
            "You must wait 60 seconds after deleting a queue before you can create"
            " another with the same name."
        )


class PurgeQueueInProgress(SqsError):
    shape = "PurgeQueueInProgress"
    query_code = "AWS.SimpleQueueService.PurgeQueueInProgress"
    status = 403

    def __init__(self, queue_name: str) -> None:
        super().__init__(
            f"Only one PurgeQueue operation on {queue_name} is allowed every 60 seconds."
        )


class OverLimit(SqsError):
    shape = "OverLimit"
    query_code = "OverLimit"
    status = 403


class ReceiptHandleIsInvalid(SqsError):
    shape = "ReceiptHandleIsInvalid"
    query_code = "ReceiptHandleIsInvalid"
    status = 404

    @classmethod
    def not_a_handle(cls, handle: str) -> ReceiptHandleIsInvalid:
        return cls(f'The input receipt handle "{handle}" is not a valid receipt handle.')

    @classmethod
    def of_another_queue(cls, handle: str) -> ReceiptHandleIsInvalid:
        return cls(f'The receipt handle "{handle}" is not valid for this queue.')


class ResourceNotFoundException(SqsError):
    shape = "ResourceNotFoundException"
    query_code = "ResourceNotFoundException"
    status = 404

    @classmethod
    def for_parameter(cls, parameter: str) -> ResourceNotFoundException:
        return cls(f"The resource that you specified for the {parameter} parameter doesn't exist.")


class MessageNotInflight(SqsError):
    shape = "MessageNotInflight"
    query_code = "AWS.SimpleQueueService.MessageNotInflight"


class UnsupportedOperation(SqsError):
    shape = "UnsupportedOperation"
    query_code = "AWS.SimpleQueueService.UnsupportedOperation"


class EmptyBatchRequest(SqsError):
    shape = "EmptyBatchRequest"
    query_code = "AWS.SimpleQueueService.EmptyBatchRequest"


class TooManyEntriesInBatchRequest(SqsError):
    shape = "TooManyEntriesInBatchRequest"
    query_code = "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"


class BatchEntryIdsNotDistinct(SqsError):
    shape = "BatchEntryIdsNotDistinct"
    query_code = "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"


class InvalidBatchEntryId(SqsError):
    shape = "InvalidBatchEntryId"
    query_code = "AWS.SimpleQueueService.InvalidBatchEntryId"


class BatchRequestTooLong(SqsError):
    shape = "BatchRequestTooLong"
    query_code = "AWS.SimpleQueueService.BatchRequestTooLong"


class InvalidAttributeName(SqsError):
    shape = "InvalidAttributeName"
    query_code = "InvalidAttributeName"

    @classmethod
    def unknown(cls, name: str) -> InvalidAttributeName:
        return cls(f"Unknown Attribute {name}.")


class InvalidAttributeValue(SqsError):
    shape = "InvalidAttributeValue"
    query_code = "InvalidAttributeValue"

    @classmethod
    def for_attribute(cls, name: str, reason: str | None = None) -> InvalidAttributeValue:
        text = f"Invalid value for the parameter {name}."
        return cls(text if reason is None else f"{text} Reason: {reason}")


class InvalidMessageContents(SqsError):
    shape = "InvalidMessageContents"
    query_code = "InvalidMessageContents"

    def __init__(self) -> None:
        super().__init__(
            "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD |"
            " #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
        )


class InvalidParameterValue(SqsError):
    shape = "InvalidParameterValueException"
    query_code = "InvalidParameterValue"
    namespace = CORAL

    @classmethod
    def for_value(cls, value: object, parameter: str, reason: str) -> InvalidParameterValue:
        return cls(f"Value {value} for parameter {parameter} is invalid. Reason: {reason}")

    @classmethod
    def for_parameter(cls, parameter: str, reason: str | None = None) -> InvalidParameterValue:
        """The form that does not repeat the value."""
        text = f"Value for parameter {parameter} is invalid."
        return cls(text if reason is None else f"{text} Reason: {reason}")

    @classmethod
    def handle_expired(cls, handle: str) -> InvalidParameterValue:
        return cls.for_value(handle, "ReceiptHandle", "The receipt handle has expired.")

    @classmethod
    def message_unavailable(cls, handle: str) -> InvalidParameterValue:
        return cls.for_value(
            handle,
            "ReceiptHandle",
            "Message does not exist or is not available for visibility timeout change.",
        )

    @classmethod
    def beyond_total_visibility(cls, seconds: int) -> InvalidParameterValue:
        return cls.for_value(
            seconds,
            "VisibilityTimeout",
            "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]",
        )

    @classmethod
    def attempt_not_retryable(cls, attempt_id: str) -> InvalidParameterValue:
        return cls.for_value(
            attempt_id,
            "ReceiveRequestAttemptId",
            "The receiveRequestAttemptId is not valid anymore since the receive call"
            " is not retryable.",
        )


class MissingParameter(SqsError):
    shape = "MissingRequiredParameterException"
    query_code = "MissingParameter"
    namespace = CORAL

    def __init__(self, parameter: str) -> None:
        super().__init__(f"The request must contain the parameter {parameter}.")
        self.parameter = parameter


class UnknownOperation(SqsError):
    shape = "UnknownOperationException"
    query_code = "InvalidAction"
    namespace = CORAL

    @classmethod
    def action(cls, action: str) -> UnknownOperation:
        return cls(f"The action {action} is not valid for this endpoint.")


class MalformedInput(SqsError):
    shape = "SerializationException"
    query_code = "MalformedInput"
    namespace = CORAL


class AccessDenied(SqsError):
    shape = "AccessDeniedException"
    query_code = "AccessDenied"
    status = 403
    namespace = CORAL


class UnrecognizedClient(SqsError):
    shape = "UnrecognizedClientException"
    query_code = "InvalidClientTokenId"
    status = 403
    namespace = CORAL


class InvalidSignature(SqsError):
    shape = "InvalidSignatureException"
    query_code = "SignatureDoesNotMatch"
    status = 403
    namespace = CORAL


class IncompleteSignature(SqsError):
    shape = "IncompleteSignatureException"
    query_code = "IncompleteSignature"
    namespace = CORAL


class RequestThrottled(SqsError):
    shape = "RequestThrottled"
    query_code = "RequestThrottled"
    status = 403


class InvalidIdFormat(SqsError):
    """Of the model; AWS is not known to answer with it any more."""

    shape = "InvalidIdFormat"
    query_code = "InvalidIdFormat"


class InvalidAddress(SqsError):
    shape = "InvalidAddress"
    query_code = "InvalidAddress"
    status = 404


class InvalidSecurity(SqsError):
    shape = "InvalidSecurity"
    query_code = "InvalidSecurity"
    status = 403


class KmsAccessDenied(SqsError):
    shape = "KmsAccessDenied"
    query_code = "KMS.AccessDeniedException"


class KmsDisabled(SqsError):
    shape = "KmsDisabled"
    query_code = "KMS.DisabledException"


class KmsInvalidKeyUsage(SqsError):
    shape = "KmsInvalidKeyUsage"
    query_code = "KMS.InvalidKeyUsageException"


class KmsInvalidState(SqsError):
    shape = "KmsInvalidState"
    query_code = "KMS.InvalidStateException"


class KmsNotFound(SqsError):
    shape = "KmsNotFound"
    query_code = "KMS.NotFoundException"


class KmsOptInRequired(SqsError):
    shape = "KmsOptInRequired"
    query_code = "KMS.OptInRequired"
    status = 403


class KmsThrottled(SqsError):
    shape = "KmsThrottled"
    query_code = "KMS.ThrottlingException"


class InternalFailure(SqsError):
    shape = "InternalFailure"
    query_code = "InternalFailure"
    status = 500
    namespace = CORAL
    fault = "Receiver"


class ServiceUnavailable(SqsError):
    """The store could not be written: the operation has changed nothing."""

    shape = "ServiceUnavailable"
    query_code = "ServiceUnavailable"
    status = 503
    namespace = CORAL
    fault = "Receiver"


class RequestEntityTooLarge(SqsError):
    """The body is larger than any request of SQS can be."""

    shape = "RequestEntityTooLargeException"
    query_code = "RequestEntityTooLarge"
    status = 413
    namespace = CORAL


class RequestHeadTooLarge(SqsError):
    """The request line and the headers are larger than the front end reads."""

    shape = "RequestHeaderSectionTooLargeException"
    query_code = "RequestHeaderSectionTooLarge"
    status = 431
    namespace = CORAL


class StoreError(Exception):
    """A store could not carry out a write; nothing of it was applied, except in a subclass."""


class OutcomeUnknown(StoreError):
    """A write was sent and never answered: all of it may have been applied, or nothing."""


class QueueNotFound(LookupError):
    """A probe was asked for a queue that does not exist; the text names close matches."""


class WaitTimeout(AssertionError):
    """A wait of a test helper ended without its condition, or never could have met it."""


class JournalForgotten(AssertionError):
    """An assertion needs events that the queue's bounded journal no longer holds."""


class ServerStartError(RuntimeError):
    """The server could not listen; the text names the address and the reason."""


class StoreRefused(ServerStartError):
    """The store cannot be used: out of reach, or its data is not ours or of a newer schema."""


class StoreInUse(RuntimeError):
    """Another live server holds the store's namespace; the text names the holder."""


class ClockModeError(RuntimeError):
    """The clock's mode does not allow this; the text says which mode would."""


class GateTimeout(RuntimeError):
    """Requests stayed open for too long to move the clock or to reset; the text names them."""

    @classmethod
    def for_requests(cls, requests: Sequence[str], seconds: float) -> GateTimeout:
        return cls(
            f"waited {seconds:g} s for {len(requests)} open request(s) to end,"
            f" and these still have no answer: {'; '.join(requests[:10])}"
        )

    @classmethod
    def for_callback(cls, seconds: float) -> GateTimeout:
        return cls(
            f"waited {seconds:g} s while the clock stands in a callback; a callback must not"
            " wait for something that moves the clock or resets the server"
        )


class AwsBlocked(RuntimeError):
    """A request would have reached AWS, and the run is to have none of those."""


class LeftoverConsumerWarning(UserWarning):
    """A consumer was still polling when the test that owned its queue ended."""


class UnusedFaultWarning(UserWarning):
    """A fault was planned and never fired."""
