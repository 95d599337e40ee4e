from __future__ import annotations


def tags(sqs, queue="orders"):
    return sqs("ListQueueTags", QueueUrl=queue).get("Tags")


def test_tags_given_at_creation_are_listed(sqs):
    sqs("CreateQueue", QueueName="orders", tags={"team": "a", "empty": ""})

    assert tags(sqs) == {"team": "a", "empty": ""}


def test_a_queue_without_tags_has_none_to_list(sqs):
    sqs.create("orders")

    assert sqs("ListQueueTags", QueueUrl="orders") == {}


def test_tagging_adds_and_overwrites_case_by_case(sqs):
    sqs("CreateQueue", QueueName="orders", tags={"team": "a", "stage": "x"})

    assert sqs("TagQueue", QueueUrl="orders", Tags={"team": "b", "Team": "c"}) == {}

    assert tags(sqs) == {"team": "b", "stage": "x", "Team": "c"}


def test_untagging_ignores_keys_that_are_not_there(sqs):
    sqs("CreateQueue", QueueName="orders", tags={"team": "a", "stage": "x"})

    assert sqs("UntagQueue", QueueUrl="orders", TagKeys=["team", "gone"]) == {}

    assert tags(sqs) == {"stage": "x"}


def test_tags_go_up_to_their_limits(sqs):
    sqs.create("orders")
    key, value = "k" * 128, "v" * 256

    sqs("TagQueue", QueueUrl="orders", Tags={key: value, "é 1_.:/=+-@": "ß 2_.:/=+-@"})

    assert tags(sqs) == {key: value, "é 1_.:/=+-@": "ß 2_.:/=+-@"}


def test_the_51st_tag_is_one_too_many_also_when_the_others_are_there_already(sqs):
    sqs.create("orders")
    fifty = {f"k{number}": "" for number in range(50)}
    sqs("TagQueue", QueueUrl="orders", Tags=fifty)

    error = sqs.error("TagQueue", QueueUrl="orders", Tags={"k51": ""})

    assert error.message == "Too many tags added for queue orders."
    assert tags(sqs) == fifty
    sqs("TagQueue", QueueUrl="orders", Tags={"k1": "changed"})
    assert tags(sqs) == fifty | {"k1": "changed"}
