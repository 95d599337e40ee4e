from __future__ import annotations

from base64 import b64decode

import pytest

URL = "http://sqs.test:9324/123456789012/"


def test_queues_are_listed_by_name_and_prefix(sqs):
    for name in ("b-2", "a-1", "b-1", "B-1"):
        sqs.create(name)
    sqs.other("999999999999").create("b-0")

    assert sqs("ListQueues") == {"QueueUrls": [URL + n for n in ("B-1", "a-1", "b-1", "b-2")]}
    assert sqs("ListQueues", QueueNamePrefix="b-") == {"QueueUrls": [f"{URL}b-1", f"{URL}b-2"]}


def test_a_list_with_nothing_in_it_is_left_out(sqs):
    sqs.create("orders")

    assert sqs("ListQueues", QueueNamePrefix="x", MaxResults=10) == {}
    assert sqs("ListDeadLetterSourceQueues", QueueUrl="orders") == {}


def pages(sqs, member, action, **parameters):
    """The names on each page."""
    token = {}
    while True:
        page = sqs(action, **parameters, **token)
        yield [url.rpartition("/")[2] for url in page[member]]
        if "NextToken" not in page:
            return
        token = {"NextToken": page["NextToken"]}


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (2, [["q0", "q1"], ["q2", "q3"], ["q4"]]),
        (5, [["q0", "q1", "q2", "q3", "q4"]]),
        (4, [["q0", "q1", "q2", "q3"], ["q4"]]),
        (1000, [["q0", "q1", "q2", "q3", "q4"]]),
    ],
)
def test_pages_of_queues_end_with_one_that_has_no_token(sqs, size, expected):
    for number in range(5):
        sqs.create(f"q{number}")
    sqs.create("other")

    found = pages(sqs, "QueueUrls", "ListQueues", QueueNamePrefix="q", MaxResults=size)

    assert list(found) == expected


def test_dead_letter_sources_are_listed_by_pages_too(sqs):
    sqs.create("dlq")
    policy = f'{{"deadLetterTargetArn":"{sqs.arn("dlq")}","maxReceiveCount":3}}'
    for number in (2, 0, 1):
        sqs.create(f"s{number}", RedrivePolicy=policy)
    sqs.create("unrelated")

    found = pages(sqs, "queueUrls", "ListDeadLetterSourceQueues", QueueUrl="dlq", MaxResults=2)

    assert list(found) == [["s0", "s1"], ["s2"]]
    assert sqs("ListDeadLetterSourceQueues", QueueUrl="dlq") == {
        "queueUrls": [f"{URL}s0", f"{URL}s1", f"{URL}s2"]
    }


def test_the_sources_of_another_accounts_queue_come_in_pages_too(sqs):
    dead_letters = sqs.create("dlq")
    policy = f'{{"deadLetterTargetArn":"{sqs.arn("dlq")}","maxReceiveCount":3}}'
    for number in range(3):
        sqs.create(f"s{number}", RedrivePolicy=policy)
    other = sqs.other("999999999999")

    found = pages(
        other, "queueUrls", "ListDeadLetterSourceQueues", QueueUrl=dead_letters, MaxResults=2
    )

    assert list(found) == [["s0", "s1"], ["s2"]]


def test_a_token_is_the_url_of_the_pages_last_queue_in_base64(sqs):
    for name in ("a", "b"):
        sqs.create(name)

    token = sqs("ListQueues", MaxResults=1)["NextToken"]

    assert b64decode(token) == f"{URL}a".encode()


def test_pages_go_on_where_queues_come_and_go_between_them(sqs):
    for name in ("a", "b", "d"):
        sqs.create(name)
    token = sqs("ListQueues", MaxResults=2)["NextToken"]
    sqs("DeleteQueue", QueueUrl="b")
    sqs.create("aa")
    sqs.create("c")

    rest = sqs("ListQueues", MaxResults=2, NextToken=token)

    assert rest == {"QueueUrls": [f"{URL}c", f"{URL}d"]}


def test_without_max_results_there_are_1000_queues_and_no_token(sqs):
    for number in range(1001):
        sqs.create(f"q{number:04}")

    listed = sqs("ListQueues")

    assert len(listed["QueueUrls"]) == 1000
    assert listed["QueueUrls"][-1] == f"{URL}q0999"
    assert "NextToken" not in listed


@pytest.mark.parametrize(
    "change",
    [{"QueueNamePrefix": "b"}, {"caller": "999999999999"}],
    ids=["another prefix", "another account"],
)
def test_a_token_belongs_to_the_request_it_came_from(sqs, change):
    for name in ("a1", "a2"):
        sqs.create(name)
    token = sqs("ListQueues", QueueNamePrefix="a", MaxResults=1)["NextToken"]
    caller = sqs.other(change.pop("caller", None))

    error = caller.error("ListQueues", MaxResults=1, NextToken=token, **change)

    assert (error.query_code, error.message) == (
        "InvalidParameterValue",
        (
            "Invalid NextToken value. If you are passing in NextToken, you must not change the"
            " other request parameters."
        ),
    )
