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


@pytest.mark.parametrize("count", [42, "42"])
def test_a_redrive_policy_is_shown_in_one_form(sqs, count):
    sqs.create("orders")
    sqs.create("dlq")
    policy = {"maxReceiveCount": count, "deadLetterTargetArn": sqs.arn("dlq")}

    change(sqs, "orders", RedrivePolicy=json.dumps(policy))

    assert sqs.attributes("orders", "RedrivePolicy") == {
        "RedrivePolicy": '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:dlq",'
        '"maxReceiveCount":42}'
    }


@pytest.mark.parametrize("count", [1, 1000])
def test_messages_may_be_received_one_to_a_thousand_times(sqs, count):
    sqs.create("dlq")
    policy = {"deadLetterTargetArn": sqs.arn("dlq"), "maxReceiveCount": count}

    sqs.create("orders", RedrivePolicy=json.dumps(policy))

    assert json.loads(sqs.attributes("orders")["RedrivePolicy"]) == policy


@pytest.mark.parametrize("name", ["q", "q.fifo"])
def test_a_queue_may_be_its_own_dead_letter_queue(sqs, name):
    sqs.create(name)
    policy = {"deadLetterTargetArn": sqs.arn(name), "maxReceiveCount": 1}

    change(sqs, name, RedrivePolicy=json.dumps(policy))

    assert json.loads(sqs.attributes(name)["RedrivePolicy"]) == policy


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Policy", '{"Version": "2012-10-17", "Statement": [{"Sid": "é"}]}'),
        ("RedriveAllowPolicy", '{"redrivePermission":"denyAll"}'),
        ("RedrivePolicy", None),
    ],
)
def test_the_empty_text_removes_a_policy(sqs, name, text):
    sqs.create("dlq")
    policy = {"deadLetterTargetArn": sqs.arn("dlq"), "maxReceiveCount": 1}
    text = text or json.dumps(policy, separators=(",", ":"))
    sqs.create("orders", **{name: text})
    assert sqs.attributes("orders", name) == {name: text}

    change(sqs, "orders", **{name: ""})

    assert sqs.attributes("orders", name) == {}
    assert sqs.create("never", **{name: ""})


TEN_ARNS = [f"arn:aws:sqs:us-east-1:123456789012:q{number}" for number in range(10)]


@pytest.mark.parametrize(
    "policy",
    [
        {"redrivePermission": "allowAll"},
        {"redrivePermission": "denyAll"},
        {"redrivePermission": "byQueue", "sourceQueueArns": TEN_ARNS},
    ],
    ids=lambda policy: policy["redrivePermission"],
)
def test_a_redrive_allow_policy_is_shown_as_it_was_set(sqs, policy):
    sqs.create("dlq")

    change(sqs, "dlq", RedriveAllowPolicy=json.dumps(policy))

    assert json.loads(sqs.attributes("dlq")["RedriveAllowPolicy"]) == policy


def redrive_error(sqs, source):
    policy = {"deadLetterTargetArn": sqs.arn("dlq"), "maxReceiveCount": 1}
    attributes = {"RedrivePolicy": json.dumps(policy)}
    return sqs.error("SetQueueAttributes", QueueUrl=source, Attributes=attributes)


def test_by_queue_lets_only_the_named_sources_in(sqs):
    for name in ("dlq", "named", "other"):
        sqs.create(name)
    allowed = {"redrivePermission": "byQueue", "sourceQueueArns": [sqs.arn("named")]}
    change(sqs, "dlq", RedriveAllowPolicy=json.dumps(allowed))
    policy = {"deadLetterTargetArn": sqs.arn("dlq"), "maxReceiveCount": 1}

    change(sqs, "named", RedrivePolicy=json.dumps(policy))

    assert redrive_error(sqs, "other").shape == "InvalidParameterValueException"


def test_a_later_refusal_leaves_the_sources_that_are_there(sqs):
    sqs.create("dlq", RedriveAllowPolicy='{"redrivePermission":"allowAll"}')
    policy = {"deadLetterTargetArn": sqs.arn("dlq"), "maxReceiveCount": 1}
    sqs.create("orders", RedrivePolicy=json.dumps(policy))

    change(sqs, "dlq", RedriveAllowPolicy='{"redrivePermission":"denyAll"}')

    assert sqs("ListDeadLetterSourceQueues", QueueUrl="dlq")["queueUrls"] == [
        "http://sqs.test:9324/123456789012/orders"
    ]
    sqs.send("orders", "poison")
    sqs.receive("orders", VisibilityTimeout=0)
    assert sqs.receive_one("dlq")["Body"] == "poison"
