from __future__ import annotations

import pytest

START_MS = 1_893_456_000_000
NEVER = {"now": "2030-01-01T00:00:00.000Z", "now_ms": START_MS, "mode": "frozen"}


def test_a_clock_with_nothing_ahead(remote) -> None:
    assert remote.get("clock").json == {**NEVER, "next_event": None}


def test_the_next_event_is_told(server, remote) -> None:
    view = server.create_queue("orders").send("a", DelaySeconds=10)

    assert remote.get("clock").json["next_event"] == {
        "at": "2030-01-01T00:00:10.000Z",
        "at_ms": START_MS + 10_000,
        "kind": "visible",
        "queue": "orders",
        "message_id": view.message_id,
        "body": "a",
        "detail": {},
    }


def test_advancing_tells_what_happened(server, remote) -> None:
    queue = server.create_queue("orders", dead_letter_queue="dead", max_receive_count=1)
    view = queue.send("a")
    queue.receive()

    answer = remote.post("clock/advance", seconds=30)

    assert answer.status == 200
    told = answer.json
    moved = {"at": "2030-01-01T00:00:30.000Z", "at_ms": START_MS + 30_000, "body": "a"}
    assert told["events"] == [
        {
            **moved,
            "kind": "dead_lettered",
            "queue": "orders",
            "message_id": view.message_id,
            "detail": {"target_arn": server.queue("dead").arn},
        },
        {
            **moved,
            "kind": "moved",
            "queue": "dead",
            "message_id": view.message_id,
            "detail": {"source_arn": queue.arn},
        },
    ]
    assert (told["now"], told["now_ms"]) == (moved["at"], moved["at_ms"])
    assert (told["mode"], told["next_event"]["kind"]) == ("frozen", "expired")


def test_fractions_of_a_second_are_exact_to_the_millisecond(server, remote) -> None:
    server.create_queue("orders").send("a", DelaySeconds=10)

    assert remote.post("clock/advance", seconds=9.999).json["events"] == []
    assert len(remote.post("clock/advance", seconds=0.001).json["events"]) == 1


def test_travelling(remote) -> None:
    told = remote.post("clock/travel_to", instant="2030-01-05T00:00:00Z").json

    assert told["now"] == "2030-01-05T00:00:00.000Z"
    assert remote.post("clock/travel_to", instant="2030-01-05T01:00:00+01:00").json["events"] == []


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        ("2029-12-31T00:00:00Z", "time cannot go back: it is 2030-01-01T00:00:00.000Z, later than"),
        ("tomorrow", "'tomorrow' is not an instant in ISO 8601"),
        ("", "'' is not an instant in ISO 8601"),
        (5, "instant must be a text, not 5"),
        (None, "instant is missing"),
        ("9999-12-31T23:59:59-23:00", "the clock goes to 9900-01-01T00:00:00Z at most"),
        ("0001-01-01T00:00:00+23:00", "year 0 is out of range"),
    ],
)
def test_a_journey_that_cannot_be_is_refused(server, remote, instant, text) -> None:
    status, told = remote.post("clock/travel_to", instant=instant).error

    assert status == 400
    assert told.startswith(text)
    assert server.clock.now_ms == START_MS


def test_the_next_event_can_be_made_to_happen(server, remote) -> None:
    queue = server.create_queue("orders")
    queue.send("a", DelaySeconds=10)
    queue.send("b", DelaySeconds=20)

    told = remote.post("clock/advance_to_next_event").json

    assert [event["body"] for event in told["events"]] == ["a"]
    assert told["now_ms"] == START_MS + 10_000
    assert told["next_event"]["body"] == "b"


def test_without_a_next_event_nothing_moves(remote) -> None:
    told = remote.post("clock/advance_to_next_event").json
    assert told == {**NEVER, "next_event": None, "events": []}


def test_the_mode_can_be_changed(server, remote) -> None:
    assert remote.post("clock/resume").json["mode"] == "live"
    assert remote.post("clock/freeze").json["mode"] == "frozen"
    told = remote.post("clock/autojump", threshold=0.5, grace=2, skip_empty_polls=True).json
    assert (told["mode"], told["events"]) == ("autojump", [])
    assert server.clock.jump_rules == (0.5, 2, True)
    assert remote.post("clock/autojump").json["mode"] == "autojump"
    assert server.clock.jump_rules == (0.002, 0.5, False)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"threshold": 0}, "threshold must be a number of seconds above 0, at most 1e+09, not 0"),
        ({"grace": 1e10}, "grace must be a number of seconds above 0, at most 1e+09, not 100000"),
        ({"skip_empty_polls": 1}, "skip_empty_polls must be true or false, not 1"),
    ],
)
def test_rules_of_jumping_that_make_no_sense_are_refused(server, remote, values, text) -> None:
    status, told = remote.post("clock/autojump", **values).error

    assert status == 400
    assert told.startswith(text)
    assert server.clock.mode == "frozen"


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("clock/advance", {"seconds": 1}),
        ("clock/travel_to", {"instant": "2060-01-01T00:00:00Z"}),
        ("clock/advance_to_next_event", {}),
        ("clock/freeze", {}),
        ("clock/resume", {}),
        ("clock/autojump", {}),
    ],
)
def test_a_clock_that_follows_the_process_cannot_be_moved(remote, path, values) -> None:
    remote.server.configure(clock="system", start=None)

    status, text = remote.post(path, **values).error

    assert status == 409
    assert "a clock in system mode follows the process clock" in text


def test_a_callback_that_fails_is_a_failure_of_the_test_not_of_the_client(server, remote) -> None:
    def fail() -> None:
        raise ValueError("broken")

    server.clock.call_at("2030-01-01T00:00:05Z", fail)

    answer = remote.post("clock/travel_to", instant="2030-01-01T00:00:10Z")

    assert answer.error == (500, "the request has failed with ValueError('broken')")
    assert server.clock.now_ms == START_MS + 5_000
    with pytest.raises(ValueError, match="broken"):
        server.check()


def test_a_tick_runs_what_is_due(server, remote) -> None:
    called = []
    server.clock.call_at("2030-01-01T00:00:00Z", lambda: called.append(1))

    [event] = remote.post("tick").json["events"]

    assert called == [1]
    assert (event["kind"], event["at_ms"], event["message_id"]) == ("callback", START_MS, None)


def test_a_reset_empties_the_server(server, remote) -> None:
    server.create_queue("orders")
    server.advance(60)

    answer = remote.post("reset")

    assert answer.json == {**NEVER, "next_event": None}
    assert server.queues == ()
    assert remote.get("clock").json["now_ms"] == START_MS


def test_moving_time_beside_requests_of_others_waits_for_none_of_its_own(
    server, remote, beside
) -> None:
    moved = [beside(remote.post, "clock/advance", seconds=1) for _ in range(8)]

    assert [each.result().status for each in moved] == [200] * 8
    assert server.clock.now_ms == START_MS + 8_000
