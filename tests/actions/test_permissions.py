from __future__ import annotations

import json

import pytest

from pytest_sqsq.actions.permissions import GRANTABLE

ARN = "arn:aws:sqs:us-east-1:123456789012:orders"


def allow(sqs, label="label", accounts=("111111111111",), actions=("ReceiveMessage",)):
    return sqs(
        "AddPermission",
        QueueUrl="orders",
        Label=label,
        AWSAccountIds=list(accounts),
        Actions=list(actions),
    )


def policy(sqs):
    text = sqs.attributes("orders", "Policy").get("Policy")
    return None if text is None else json.loads(text)


def statement(
    label="label", accounts="arn:aws:iam::111111111111:root", actions="SQS:ReceiveMessage"
):
    return {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": accounts},
        "Action": actions,
        "Resource": ARN,
    }


@pytest.fixture
def orders(sqs):
    sqs.create("orders")
    return sqs


def test_the_first_permission_makes_a_policy_in_the_form_of_aws(orders):
    assert allow(orders) == {}

    assert orders.attributes("orders", "Policy")["Policy"] == (
        '{"Version":"2008-10-17","Id":"' + ARN + '/SQSDefaultPolicy","Statement":['
        '{"Sid":"label","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111111111111:root"},'
        '"Action":"SQS:ReceiveMessage","Resource":"' + ARN + '"}]}'
    )


def test_several_accounts_and_actions_are_lists(orders):
    allow(orders, accounts=("111111111111", "222222222222"), actions=("*", "SendMessage"))

    assert policy(orders)["Statement"] == [
        statement(
            accounts=["arn:aws:iam::111111111111:root", "arn:aws:iam::222222222222:root"],
            actions=["SQS:*", "SQS:SendMessage"],
        )
    ]


def test_principals_are_of_the_queues_partition(sqs):
    china = sqs.other(region="cn-north-1")
    china.create("orders")

    allow(china)

    (granted,) = policy(china)["Statement"]
    assert granted["Principal"] == {"AWS": "arn:aws-cn:iam::111111111111:root"}


def test_permissions_come_and_go_by_label(orders):
    allow(orders, "one")
    allow(orders, "two")
    assert policy(orders)["Statement"] == [statement("one"), statement("two")]

    assert orders("RemovePermission", QueueUrl="orders", Label="one") == {}
    assert policy(orders)["Statement"] == [statement("two")]

    orders("RemovePermission", QueueUrl="orders", Label="two")
    assert policy(orders) is None
    assert orders.error("RemovePermission", QueueUrl="orders", Label="two").message == (
        "Value two for parameter Label is invalid. Reason: can't find label."
    )


def test_a_refused_label_leaves_the_policy_alone(orders):
    allow(orders)

    error = orders.error(
        "AddPermission",
        QueueUrl="orders",
        Label="label",
        AWSAccountIds=["222222222222"],
        Actions=["*"],
    )

    assert error.message == "Value label for parameter Label is invalid. Reason: Already exists."
    assert policy(orders)["Statement"] == [statement()]


@pytest.mark.parametrize("given", [[{"Sid": "mine"}], {"Sid": "mine"}], ids=["list", "single"])
def test_a_policy_of_ones_own_keeps_its_version_and_id(orders, given):
    own = {"Id": "own", "Version": "2012-10-17", "Statement": given}
    orders("SetQueueAttributes", QueueUrl="orders", Attributes={"Policy": json.dumps(own)})

    allow(orders)

    assert policy(orders) == own | {"Statement": [{"Sid": "mine"}, statement()]}


@pytest.mark.parametrize("action", sorted(GRANTABLE))
def test_an_owner_may_grant(orders, action):
    allow(orders, actions=(action,))

    assert policy(orders)["Statement"] == [statement(actions=f"SQS:{action}")]


def test_seven_actions_and_twenty_statements_are_the_most(orders):
    for number in range(20):
        allow(orders, f"label-{number}", actions=["SendMessage"] * 7)

    error = orders.error(
        "AddPermission",
        QueueUrl="orders",
        Label="more",
        AWSAccountIds=["111111111111"],
        Actions=["*"],
    )

    assert (error.query_code, error.status, error.message) == (
        "OverLimit",
        403,
        "21 Statements were found, maximum allowed is 20.",
    )


def test_permissions_show_in_the_time_of_the_last_modification(orders):
    orders.clock.advance(5)

    allow(orders)

    assert orders.attributes("orders")["LastModifiedTimestamp"] == "1893456005"


def test_the_query_protocol_names_the_missing_lists_its_own_way(orders):
    orders.context.protocol = "query"
    given = {"QueueUrl": "orders", "Label": "l"}

    texts = [
        orders.error("AddPermission", **given, Actions=["*"]).message,
        orders.error("AddPermission", **given, AWSAccountIds=["111111111111"]).message,
    ]

    assert texts == [
        "The request must contain the parameter AWSAccountId.",
        "The request must contain the parameter ActionName.",
    ]
