from __future__ import annotations

import json

import pytest


def change(sqs, queue, **attributes):
    return sqs("SetQueueAttributes", QueueUrl=queue, Attributes=attributes)


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
