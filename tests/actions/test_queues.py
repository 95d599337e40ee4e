from __future__ import annotations

import pytest

URL = "http://sqs.test:9324/123456789012/"


@pytest.mark.parametrize(
    "url",
    [
        "orders",
        "/123456789012/orders",
        "123456789012/orders",
        "http://sqs.test:9324/123456789012/orders",
        "https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
        "https://queue.amazonaws.com/123456789012/orders/",
        "http://localhost:4566/queue/us-east-1/123456789012/orders",
        "http://localhost/orders",
    ],
)
def test_a_queue_url_is_read_by_its_last_segments_whatever_its_host(sqs, url):
    sqs.create("orders")

    sqs.send(url, "hello")

    assert sqs.receive_one("orders")["Body"] == "hello"


def test_a_bare_name_is_a_queue_of_the_callers_account(sqs):
    other = sqs.other("999999999999")
    sqs.create("orders")
    other.create("orders")

    other.send("orders", "theirs")

    assert sqs.receive("orders") == []
    assert sqs.receive_one("http://x/999999999999/orders")["Body"] == "theirs"


def test_regions_are_separate_worlds(sqs):
    sqs.create("orders")
    europe = sqs.other(region="eu-west-1")

    error = europe.error("SendMessage", QueueUrl=f"{URL}orders", MessageBody="b")

    assert error.shape == "QueueDoesNotExist"
    assert europe("ListQueues") == {}


@pytest.mark.parametrize(
    ("region", "partition"),
    [
        ("us-east-1", "aws"),
        ("cn-north-1", "aws-cn"),
        ("us-gov-west-1", "aws-us-gov"),
        ("eusc-de-east-1", "aws-eusc"),
        ("us-iso-east-1", "aws-iso"),
        ("us-isob-east-1", "aws-iso-b"),
        ("eu-isoe-west-1", "aws-iso-e"),
        ("us-isof-south-1", "aws-iso-f"),
    ],
)
def test_the_region_gives_the_partition_of_the_arn(sqs, region, partition):
    caller = sqs.other(region=region)
    caller.create("orders")

    assert caller.arn("orders") == f"arn:{partition}:sqs:{region}:123456789012:orders"


def test_the_url_of_a_queue_is_the_same_when_it_is_made_and_asked_for(sqs):
    assert sqs.create("orders") == f"{URL}orders"
    assert sqs("GetQueueUrl", QueueName="orders") == {"QueueUrl": f"{URL}orders"}


def test_get_queue_url_finds_the_queue_of_another_account(sqs):
    sqs.other("999999999999").create("orders")

    found = sqs("GetQueueUrl", QueueName="orders", QueueOwnerAWSAccountId="999999999999")

    assert found == {"QueueUrl": "http://sqs.test:9324/999999999999/orders"}


@pytest.mark.parametrize("name", ["a", "A-b_9", "x" * 80])
def test_names_of_standard_queues_have_up_to_80_letters_digits_hyphens_underscores(sqs, name):
    assert sqs.create(name).endswith(f"/{name}")


def test_the_suffix_of_a_fifo_queue_counts_in_its_80_characters(sqs):
    name = "x" * 75 + ".fifo"

    assert sqs.create(name).endswith(f"/{name}")


def test_names_are_case_sensitive(sqs):
    sqs.create("Orders")

    assert sqs.error("GetQueueUrl", QueueName="orders").shape == "QueueDoesNotExist"


def test_creating_without_attributes_finds_the_queue_whatever_its_attributes_are(sqs):
    url = sqs.create("orders", DelaySeconds="5")
    sqs("SetQueueAttributes", QueueUrl=url, Attributes={"VisibilityTimeout": "7"})

    assert sqs.create("orders") == url
    assert sqs.attributes(url, "DelaySeconds", "VisibilityTimeout") == {
        "DelaySeconds": "5",
        "VisibilityTimeout": "7",
    }


@pytest.mark.parametrize(
    ("name", "made_with", "created_with", "named"),
    [
        ("q", {"DelaySeconds": "1"}, {"DelaySeconds": "2"}, "DelaySeconds"),
        ("q", {}, {"DelaySeconds": "1"}, "DelaySeconds"),
        ("q", {}, {"VisibilityTimeout": "1", "DelaySeconds": "1"}, "DelaySeconds"),
        ("q", {}, {"Policy": '{"Statement": []}'}, "Policy"),
        ("q", {"Policy": '{"Statement": []}'}, {"Policy": ""}, "Policy"),
        ("q", {}, {"KmsMasterKeyId": "key"}, "KmsMasterKeyId"),
        (
            "q.fifo",
            {"ContentBasedDeduplication": "true"},
            {"ContentBasedDeduplication": "false"},
            "ContentBasedDeduplication",
        ),
    ],
)
def test_creating_with_another_value_names_the_first_attribute_that_differs(
    sqs, name, made_with, created_with, named
):
    sqs.create(name, **made_with)
    fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}

    error = sqs.error("CreateQueue", QueueName=name, Attributes={**fifo, **created_with})

    assert (error.query_code, error.status, error.message) == (
        "QueueAlreadyExists",
        400,
        f"A queue already exists with the same name and a different value for attribute {named}",
    )


def test_creating_compares_what_is_passed_with_what_the_queue_has_now(sqs):
    url = sqs.create("orders", DelaySeconds="1")
    sqs("SetQueueAttributes", QueueUrl=url, Attributes={"DelaySeconds": "2"})

    error = sqs.error("CreateQueue", QueueName="orders", Attributes={"DelaySeconds": "1"})

    assert error.shape == "QueueNameExists"
    assert sqs.create("orders", DelaySeconds="2") == url


def test_creating_does_not_compare_what_is_not_passed(sqs):
    url = sqs.create("orders", DelaySeconds="1", VisibilityTimeout="2")

    assert sqs.create("orders", VisibilityTimeout="2") == url


@pytest.mark.parametrize(
    ("name", "made_with", "created_with"),
    [
        ("q", {"DelaySeconds": "7"}, {"DelaySeconds": "007"}),
        ("q", {"SqsManagedSseEnabled": "true"}, {"SqsManagedSseEnabled": "True"}),
        ("q", {}, {"VisibilityTimeout": "30", "MaximumMessageSize": "1048576"}),
        (
            "q",
            {"Policy": '{"Id": "x", "Statement": []}'},
            {"Policy": '{"Statement":[],"Id":"x"}'},
        ),
        (
            "q",
            {"KmsMasterKeyId": "key", "KmsDataKeyReusePeriodSeconds": "600"},
            {"KmsMasterKeyId": "key", "KmsDataKeyReusePeriodSeconds": "600"},
        ),
        ("q", {"KmsDataKeyReusePeriodSeconds": "600"}, {"KmsDataKeyReusePeriodSeconds": "600"}),
        (
            "q.fifo",
            {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"},
            {"FifoThroughputLimit": "perMessageGroupId"},
        ),
    ],
)
def test_creating_with_equal_values_gives_the_same_queue(sqs, name, made_with, created_with):
    assert sqs.create(name, **made_with) == sqs.create(name, **created_with)


def test_redrive_policies_are_compared_by_meaning(sqs):
    sqs.create("dlq")
    arn = sqs.arn("dlq")
    url = sqs.create(
        "orders", RedrivePolicy=f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":3}}'
    )

    again = sqs.create(
        "orders", RedrivePolicy=f'{{"maxReceiveCount": "3", "deadLetterTargetArn": "{arn}"}}'
    )

    assert again == url


def test_creating_an_existing_queue_ignores_tags(sqs):
    sqs("CreateQueue", QueueName="orders", tags={"team": "a"})

    sqs("CreateQueue", QueueName="orders", tags={"team": "b"})

    assert sqs("ListQueueTags", QueueUrl="orders") == {"Tags": {"team": "a"}}


def test_a_deleted_queue_is_gone_at_once_with_its_messages(sqs):
    sqs.create("orders")
    sqs.send("orders", "lost")

    assert sqs("DeleteQueue", QueueUrl="orders") == {}

    assert sqs.error("GetQueueUrl", QueueName="orders").shape == "QueueDoesNotExist"
    assert sqs.error("DeleteQueue", QueueUrl="orders").shape == "QueueDoesNotExist"
    sqs.create("orders")
    assert sqs.receive("orders") == []


def test_a_name_can_be_used_again_a_minute_after_its_queue_was_deleted(sqs):
    sqs.context.cooldowns = True
    sqs.create("orders")
    sqs("DeleteQueue", QueueUrl="orders")
    sqs.clock.advance(59.999)

    error = sqs.error("CreateQueue", QueueName="orders")

    assert (error.query_code, error.status, error.message) == (
        "AWS.SimpleQueueService.QueueDeletedRecently",
        400,
        (
            "You must wait 60 seconds after deleting a queue before you can create another with the"
            " same name."
        ),
    )
    sqs.clock.advance(0.001)
    assert sqs.create("orders")


def test_cooldowns_do_not_hold_up_other_names_and_existing_queues(sqs):
    sqs.context.cooldowns = True
    sqs.create("orders")
    sqs("DeleteQueue", QueueUrl="orders")
    sqs.create("others")

    assert sqs.create("others")
    assert sqs.other("999999999999").create("orders")


def test_a_purge_drops_messages_of_every_state(sqs):
    sqs.create("orders")
    sqs.send("orders", "in flight")
    handle = sqs.receive_one("orders")["ReceiptHandle"]
    sqs.send("orders", "visible")
    sqs.send("orders", "delayed", DelaySeconds=10)

    assert sqs("PurgeQueue", QueueUrl="orders") == {}

    sqs.clock.advance(60)
    assert sqs.receive("orders") == []
    assert sqs("DeleteMessage", QueueUrl="orders", ReceiptHandle=handle) == {}


def test_a_purge_forgets_deduplication_ids(sqs):
    sqs.create("orders.fifo")
    ids = {"MessageGroupId": "g", "MessageDeduplicationId": "d"}
    sqs.send("orders.fifo", "one", **ids)
    sqs("PurgeQueue", QueueUrl="orders.fifo")

    sqs.send("orders.fifo", "two", **ids)

    assert sqs.receive_one("orders.fifo")["Body"] == "two"


def test_a_second_purge_within_a_minute_is_refused(sqs):
    sqs.context.cooldowns = True
    url = sqs.create("orders")
    sqs("PurgeQueue", QueueUrl=url)
    sqs.send(url, "kept")
    sqs.clock.advance(59.999)

    error = sqs.error("PurgeQueue", QueueUrl=url)

    assert (error.query_code, error.status, error.message) == (
        "AWS.SimpleQueueService.PurgeQueueInProgress",
        403,
        "Only one PurgeQueue operation on orders is allowed every 60 seconds.",
    )
    sqs.clock.advance(0.001)
    sqs("PurgeQueue", QueueUrl=url)
    assert sqs.receive(url) == []


def test_without_cooldowns_queues_are_purged_and_made_again_at_once(sqs):
    url = sqs.create("orders")
    sqs("PurgeQueue", QueueUrl=url)
    sqs("PurgeQueue", QueueUrl=url)
    sqs("DeleteQueue", QueueUrl=url)

    assert sqs.create("orders") == url
