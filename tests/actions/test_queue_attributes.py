from __future__ import annotations

import json

import pytest

from pytest_sqsq import limits
from pytest_sqsq.actions.attributes import SETTABLE
from pytest_sqsq.models import QueueSettings

FRESH = {
    "ApproximateNumberOfMessages": "0",
    "ApproximateNumberOfMessagesDelayed": "0",
    "ApproximateNumberOfMessagesNotVisible": "0",
    "CreatedTimestamp": "1893456000",
    "DelaySeconds": "0",
    "LastModifiedTimestamp": "1893456000",
    "MaximumMessageSize": "1048576",
    "MessageRetentionPeriod": "345600",
    "QueueArn": "arn:aws:sqs:us-east-1:123456789012:orders",
    "ReceiveMessageWaitTimeSeconds": "0",
    "SqsManagedSseEnabled": "true",
    "VisibilityTimeout": "30",
}
FRESH_FIFO = {
    **FRESH,
    "QueueArn": "arn:aws:sqs:us-east-1:123456789012:orders.fifo",
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoQueue": "true",
    "FifoThroughputLimit": "perQueue",
}


def change(sqs, queue, **attributes):
    return sqs("SetQueueAttributes", QueueUrl=queue, Attributes=attributes)


def test_a_fresh_standard_queue_shows_twelve_attributes(sqs):
    assert sqs.attributes(sqs.create("orders")) == FRESH


def test_a_fresh_fifo_queue_shows_sixteen_attributes(sqs):
    assert sqs.attributes(sqs.create("orders.fifo")) == FRESH_FIFO


def test_the_settings_of_a_fresh_queue_are_the_documented_defaults():
    settings = QueueSettings()

    assert (
        settings.delay_seconds,
        settings.maximum_message_size,
        settings.message_retention_period,
        settings.receive_message_wait_time_seconds,
        settings.visibility_timeout,
        settings.kms_data_key_reuse_period_seconds,
    ) == (
        limits.DEFAULT_DELAY_SECONDS,
        limits.DEFAULT_MAXIMUM_MESSAGE_SIZE,
        limits.DEFAULT_MESSAGE_RETENTION_PERIOD,
        limits.DEFAULT_RECEIVE_MESSAGE_WAIT_TIME_SECONDS,
        limits.DEFAULT_VISIBILITY_TIMEOUT,
        limits.DEFAULT_KMS_DATA_KEY_REUSE_PERIOD_SECONDS,
    )


def test_every_setting_has_an_attribute():
    fields = {attribute.field for attribute in SETTABLE.values()}

    assert fields == set(QueueSettings.__dataclass_fields__)


@pytest.mark.parametrize("names", [[], None])
def test_without_names_no_attribute_is_given(sqs, names):
    sqs.create("orders")

    assert sqs("GetQueueAttributes", QueueUrl="orders", AttributeNames=names) == {}


def test_a_name_that_is_not_set_is_left_out(sqs):
    sqs.create("orders")

    assert sqs.attributes("orders", "Policy", "DelaySeconds") == {"DelaySeconds": "0"}
    assert sqs("GetQueueAttributes", QueueUrl="orders", AttributeNames=["Policy"]) == {}


def test_all_with_other_names_is_everything(sqs):
    sqs.create("orders")

    assert sqs.attributes("orders", "DelaySeconds", "All") == FRESH


def test_a_standard_queue_has_no_fifo_attribute_to_show(sqs):
    sqs.create("orders")

    assert sqs.attributes("orders", "FifoQueue", "DeduplicationScope") == {}


LIMITS = {
    "DelaySeconds": limits.DELAY_SECONDS,
    "MaximumMessageSize": limits.MAXIMUM_MESSAGE_SIZE,
    "MessageRetentionPeriod": limits.MESSAGE_RETENTION_PERIOD,
    "ReceiveMessageWaitTimeSeconds": limits.RECEIVE_MESSAGE_WAIT_TIME_SECONDS,
    "VisibilityTimeout": limits.VISIBILITY_TIMEOUT,
}


@pytest.mark.parametrize("end", ["low", "high"])
@pytest.mark.parametrize("name", LIMITS)
def test_both_ends_of_a_range_are_inside(sqs, name, end):
    bound = str(getattr(LIMITS[name], end))

    assert sqs.attributes(sqs.create("made", **{name: bound}), name) == {name: bound}
    sqs.create("changed")
    change(sqs, "changed", **{name: bound})
    assert sqs.attributes("changed", name) == {name: bound}


def test_setting_changes_only_what_is_passed(sqs):
    sqs.create("orders", DelaySeconds="3")

    assert change(sqs, "orders", VisibilityTimeout="9") == {}

    assert sqs.attributes("orders") == FRESH | {"DelaySeconds": "3", "VisibilityTimeout": "9"}


def test_setting_shows_in_the_time_of_the_last_modification(sqs):
    sqs.create("orders")
    sqs.clock.advance(61.5)

    change(sqs, "orders", VisibilityTimeout="9")

    times = sqs.attributes("orders", "CreatedTimestamp", "LastModifiedTimestamp")
    assert times == {"CreatedTimestamp": "1893456000", "LastModifiedTimestamp": "1893456061"}


def test_counts_follow_the_messages(sqs):
    sqs.create("orders")
    for body in ("a", "b", "c"):
        sqs.send("orders", body)
    sqs.send("orders", "d", DelaySeconds=10)
    sqs.receive("orders", VisibilityTimeout=5)

    def counts():
        shown = sqs.attributes("orders")
        return [
            shown[f"ApproximateNumberOfMessages{suffix}"]
            for suffix in ("", "NotVisible", "Delayed")
        ]

    assert counts() == ["2", "1", "1"]
    sqs.clock.advance(5)
    assert counts() == ["3", "0", "1"]
    sqs.clock.advance(5)
    assert counts() == ["4", "0", "0"]


@pytest.mark.parametrize(("given", "shown"), [("True", "true"), ("FALSE", "false")])
def test_booleans_are_shown_in_lower_case(sqs, given, shown):
    sqs.create("orders.fifo", ContentBasedDeduplication=given)

    found = sqs.attributes("orders.fifo", "ContentBasedDeduplication")

    assert found == {"ContentBasedDeduplication": shown}


def test_setting_fifo_queue_to_true_on_a_fifo_queue_changes_nothing(sqs):
    sqs.create("orders.fifo")

    assert change(sqs, "orders.fifo", FifoQueue="true") == {}

    assert sqs.attributes("orders.fifo") == FRESH_FIFO


def test_high_throughput_is_switched_on_and_off_as_a_pair(sqs):
    sqs.create("orders.fifo")
    pair = ("DeduplicationScope", "FifoThroughputLimit")
    high = dict(zip(pair, ("messageGroup", "perMessageGroupId"), strict=True))
    regular = dict(zip(pair, ("queue", "perQueue"), strict=True))

    change(sqs, "orders.fifo", **high)
    assert sqs.attributes("orders.fifo", *pair) == high
    change(sqs, "orders.fifo", **regular)
    assert sqs.attributes("orders.fifo", *pair) == regular


def test_the_throughput_limit_holds_on_to_its_scope(sqs):
    sqs.create(
        "orders.fifo", DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId"
    )

    error = sqs.error(
        "SetQueueAttributes", QueueUrl="orders.fifo", Attributes={"DeduplicationScope": "queue"}
    )

    assert error.shape == "InvalidAttributeValue"
    assert sqs.attributes("orders.fifo", "DeduplicationScope") == {
        "DeduplicationScope": "messageGroup"
    }


SSE = ("SqsManagedSseEnabled", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds")


def test_a_key_takes_the_place_of_encryption_by_sqs(sqs):
    made = sqs.create("made", KmsMasterKeyId="key")
    sqs.create("changed")
    change(sqs, "changed", KmsMasterKeyId="key")

    expected = dict(zip(SSE, ("false", "key", "300"), strict=True))
    assert sqs.attributes(made, *SSE) == expected
    assert sqs.attributes("changed", *SSE) == expected


def test_a_key_is_shown_with_the_reuse_period_it_was_given(sqs):
    sqs.create("orders", KmsMasterKeyId="key", KmsDataKeyReusePeriodSeconds="60")

    assert sqs.attributes("orders", *SSE) == dict(zip(SSE, ("false", "key", "60"), strict=True))


def test_the_reuse_period_stays_with_its_key(sqs):
    sqs.create("orders", KmsMasterKeyId="key", KmsDataKeyReusePeriodSeconds="60")

    change(sqs, "orders", VisibilityTimeout="9")
    assert sqs.attributes("orders", *SSE)["KmsDataKeyReusePeriodSeconds"] == "60"

    change(sqs, "orders", KmsMasterKeyId="")
    change(sqs, "orders", KmsMasterKeyId="another")
    assert sqs.attributes("orders", *SSE)["KmsDataKeyReusePeriodSeconds"] == "300"


def test_a_reuse_period_may_be_set_before_its_key(sqs):
    sqs.create("orders", KmsMasterKeyId="key")
    change(sqs, "orders", KmsMasterKeyId="", KmsDataKeyReusePeriodSeconds="60")

    change(sqs, "orders", KmsMasterKeyId="another")

    assert sqs.attributes("orders", *SSE)["KmsDataKeyReusePeriodSeconds"] == "60"


def test_encryption_by_sqs_takes_the_place_of_a_key(sqs):
    sqs.create("orders", KmsMasterKeyId="key", KmsDataKeyReusePeriodSeconds="60")

    change(sqs, "orders", SqsManagedSseEnabled="true")

    assert sqs.attributes("orders") == FRESH
    change(sqs, "orders", KmsMasterKeyId="another")
    assert sqs.attributes("orders", *SSE) == dict(
        zip(SSE, ("false", "another", "300"), strict=True)
    )


def test_removing_the_key_leaves_no_encryption(sqs):
    sqs.create("orders", KmsMasterKeyId="key")

    change(sqs, "orders", KmsMasterKeyId="", KmsDataKeyReusePeriodSeconds="300")

    assert sqs.attributes("orders") == FRESH | {"SqsManagedSseEnabled": "false"}


def test_encryption_can_be_switched_off(sqs):
    sqs.create("orders", SqsManagedSseEnabled="false")

    assert sqs.attributes("orders", *SSE) == {"SqsManagedSseEnabled": "false"}


@pytest.mark.parametrize(
    "policy",
    [
        {"Statement": [{}] * 20},
        {"Statement": {"Sid": "single"}},
        {"Statement": [], "Id": "x" * (8192 - len('{"Statement": [], "Id": ""}'))},
    ],
    ids=["twenty statements", "one statement", "8192 bytes"],
)
def test_a_policy_goes_up_to_its_limits_and_is_kept_as_sent(sqs, policy):
    text = json.dumps(policy)

    sqs.create("orders", Policy=text)

    assert sqs.attributes("orders", "Policy") == {"Policy": text}
