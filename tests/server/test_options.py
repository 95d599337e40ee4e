from __future__ import annotations

import datetime as dt

import pytest

from pytest_sqsq import SqsServer
from pytest_sqsq.errors import StoreRefused
from pytest_sqsq.options import PLUGIN_OPTIONS, SERVER_OPTIONS, plugin_options

DEFAULTS = {
    "host": "127.0.0.1",
    "port": 0,
    "clock": "live",
    "start": None,
    "store": "memory",
    "store_prefix": None,
    "store_timeout": 3.0,
    "region": "us-east-1",
    "account_id": "000000000000",
    "dead_letter_on": "tick",
    "cooldowns": False,
    "in_flight_limit": 120_000,
    "delivery": "ordered",
    "seed": None,
    "signatures": "ignore",
    "journal_size": 10_000,
    "request_log_size": 10_000,
    "max_connections": 2048,
    "control": "loopback",
}


def test_the_defaults_are_the_documented_ones() -> None:
    assert {name: SERVER_OPTIONS[name].default for name in DEFAULTS} == DEFAULTS
    assert PLUGIN_OPTIONS.keys() > SERVER_OPTIONS.keys()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"port": -1}, "port must be an integer from 0 to 65535, not -1"),
        ({"port": True}, "port must be an integer"),
        ({"port": "80"}, "port must be an integer"),
        ({"host": ""}, "host must be a host name or address"),
        ({"clock": "stopped"}, "clock must be one of 'live', 'frozen', 'autojump', 'system'"),
        ({"start": "soon"}, "start: 'soon' is not an instant in ISO 8601"),
        ({"start": dt.datetime(2030, 1, 1)}, "start: .* has no time zone"),  # noqa: DTZ001
        ({"start": 5}, "start must be an aware datetime or ISO 8601 text, not 5"),
        ({"account_id": "12"}, "account_id must be 12 digits, not '12'"),
        ({"in_flight_limit": 0}, "in_flight_limit must be an integer of at least 1, not 0"),
        ({"cooldowns": "yes"}, "cooldowns must be true or false, not 'yes'"),
        ({"seed": 1.5}, "seed must be an integer, not 1.5"),
        ({"region": None}, "region must be a text that is not empty, not None"),
        ({"clock": "system", "start": "2030-01-01"}, "takes no start"),
    ],
)
def test_a_bad_value_is_refused(options, text) -> None:
    with pytest.raises(ValueError, match=text):
        SqsServer(**options).start()


def test_an_unknown_option_is_refused_with_the_closest_one() -> None:
    with pytest.raises(TypeError, match="unknown option 'inflight_limit'; did you mean 'in_fl"):
        SqsServer(inflight_limit=5)


def test_a_store_that_cannot_be_reached_is_named() -> None:
    with pytest.raises(StoreRefused, match=r"^the Redis at 127\.0\.0\.1:1, database 0 cannot"):
        SqsServer(store="redis://127.0.0.1:1").start()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("port", "9324", 9324),
        ("cooldowns", "True", True),
        ("cooldowns", "off", False),
        ("seed", "-3", -3),
        ("timeout_factor", "2.5", 2.5),
        ("clock", " frozen ", "frozen"),
        ("start", "2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
    ],
)
def test_texts_stand_for_values(name, text, value) -> None:
    assert PLUGIN_OPTIONS[name].parse(text) == value


@pytest.mark.parametrize(
    ("name", "text"), [("port", "many"), ("cooldowns", "perhaps"), ("clock", ""), ("seed", "1.5")]
)
def test_texts_that_stand_for_none_are_refused(name, text) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        PLUGIN_OPTIONS[name].parse(text)


def test_a_later_source_wins_option_by_option() -> None:
    options = plugin_options({"clock": "frozen", "seed": 1}, {"seed": 2})

    assert (options["clock"], options["seed"], options["report"]) == ("frozen", 2, "failed")


@pytest.mark.parametrize(
    ("options", "year"),
    [
        ({"seed": 1}, 2030),
        ({"seed": 1, "start": "2031-01-01"}, 2031),
        ({"start": "2032-01-01"}, 2032),
    ],
)
def test_a_seeded_frozen_server_starts_in_2030(make_server, options, year) -> None:
    assert make_server(**options).now == dt.datetime(year, 1, 1, tzinfo=dt.UTC)


def test_options_reach_the_engine_and_the_gateway(make_server) -> None:
    server = make_server(
        account_id="111122223333",
        region="eu-central-1",
        in_flight_limit=1,
        dead_letter_on="receive",
        journal_size=2,
        request_log_size=1,
        cooldowns=True,
    )
    queue = server.create_queue("orders")
    for body in "abc":
        queue.send(body)
    client = server.client()
    client.list_queues()
    client.purge_queue(QueueUrl=queue.url)

    assert queue.arn == "arn:aws:sqs:eu-central-1:111122223333:orders"
    assert server.broker.in_flight_limit == 1
    assert server.broker.dead_letter_on == "receive"
    assert queue.internals.journal.forgotten == 2
    assert [each.action for each in server.requests] == ["PurgeQueue"]
    with pytest.raises(client.exceptions.PurgeQueueInProgress):
        client.purge_queue(QueueUrl=queue.url)
