"""One server at a time: who holds a namespace, and what becomes of who has lost it."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

import pytest

from pytest_sqsq.errors import ServiceUnavailable, StoreError, StoreInUse

HOLDER = """
import sys
from pytest_sqsq.store import make_store
store = make_store(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def lease_of(client) -> dict[str, object]:
    return json.loads(client.get("ssq:lease"))


def test_a_second_server_is_refused_and_told_who_is_there(open_kept) -> None:
    open_kept()
    with pytest.raises(StoreInUse) as refused:
        open_kept()
    assert f"in use by process {os.getpid()} on host {socket.gethostname()}" in str(refused.value)
    assert "store_prefix" in str(refused.value)
    assert lease_of(open_kept.client)["pid"] == os.getpid()


def test_a_closed_store_leaves_its_namespace_free(open_kept) -> None:
    open_kept().close()
    assert not open_kept.client.exists("ssq:lease")
    open_kept()


def test_a_server_on_another_host_is_believed_to_live(open_kept) -> None:
    text = json.dumps({"token": "t", "host": "elsewhere", "pid": 1})
    open_kept.client.set("ssq:lease", text)
    with pytest.raises(StoreInUse, match="process 1 on host elsewhere"):
        open_kept()
    assert open_kept.client.get("ssq:lease") == text


def test_a_process_that_had_our_id_is_gone(open_kept) -> None:
    text = json.dumps({"token": "t", "host": socket.gethostname(), "pid": os.getpid()})
    open_kept.client.set("ssq:lease", text)
    open_kept()
    assert lease_of(open_kept.client)["token"] != "t"


def test_a_store_that_was_dropped_without_being_closed_holds_nothing(open_fake) -> None:
    holder = open_fake()
    open_fake.forget(holder)
    del holder
    open_fake()


@pytest.fixture
def holder(shared_redis, start_python):
    """A process that holds the namespace of ``shared_redis``."""
    shared_redis.client.flushall()
    process = start_python("-c", HOLDER, shared_redis.url)
    assert process.stdout.readline() == "open\n"
    return process


@pytest.fixture
def open_redis(shared_redis, opener):
    return opener(shared_redis)


def test_a_live_process_keeps_its_namespace(holder, open_redis) -> None:
    with pytest.raises(StoreInUse, match=f"process {holder.pid} on host"):
        open_redis()


def test_the_namespace_of_a_killed_process_is_taken_over_at_once(holder, open_redis) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait(30)
    assert open_redis.client.exists("ssq:lease")
    open_redis()
    assert lease_of(open_redis.client)["pid"] == os.getpid()


@pytest.mark.skipif(sys.platform != "linux", reason="only there it can be told")
def test_a_killed_process_is_gone_before_its_parent_has_asked(holder, open_redis) -> None:
    holder.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    open_redis()
    assert lease_of(open_redis.client)["pid"] == os.getpid()


def test_a_lease_ends_by_itself_in_redis_and_is_renewed_by_a_beat(open_redis) -> None:
    store = open_redis()
    assert 0 < open_redis.client.pttl("ssq:lease") <= 10_000
    open_redis.client.pexpire("ssq:lease", 100_000)
    assert store.beat()
    assert 0 < open_redis.client.pttl("ssq:lease") <= 10_000


def test_a_lease_that_ended_is_taken_again_where_nobody_else_came(open_kept, make_world) -> None:
    world = make_world(open_kept())
    queue = world.queue()
    open_kept.client.delete("ssq:lease")
    world.send(queue, "a")
    assert lease_of(open_kept.client)["pid"] == os.getpid()
    assert world.crashed().loaded == (1, 1)


def test_a_beat_takes_again_a_lease_that_ended(open_redis) -> None:
    store = open_redis()
    open_redis.client.delete("ssq:lease")
    assert store.beat()
    assert open_redis.client.exists("ssq:lease")


def test_who_has_lost_the_lease_writes_nothing_any_more(open_kept, make_world) -> None:
    loser = make_world(open_kept())
    queue = loser.queue()
    loser.send(queue, "a")
    open_kept.client.delete("ssq:lease")
    winner = make_world(open_kept())
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match=f"taken by process {os.getpid()}"):
            loser.send(queue, "b")
    assert "taken by" in loser.store.trouble
    winner.send(winner.queue(), "c")
    loser.broker.close()
    assert open_kept.client.exists("ssq:lease")
    winner = winner.crashed()
    assert winner.bodies(winner.queue()) == ["a", "c"]


def test_who_was_away_while_another_one_wrote_writes_nothing_any_more(
    open_kept, make_world
) -> None:
    loser = make_world(open_kept())
    queue = loser.queue()
    open_kept.client.delete("ssq:lease")
    winner = make_world(open_kept())
    winner.send(winner.queue(), "b")
    winner.broker.close()
    with pytest.raises(ServiceUnavailable, match="somebody else has written"):
        loser.send(queue, "a")
    with pytest.raises(StoreError):
        loser.store.erase()
    assert not open_kept.client.exists("ssq:lease")


def test_a_transaction_under_way_is_refused_once_the_lease_is_lost(open_kept, make_world) -> None:
    """The lease is watched on the connection that writes: nothing is checked before."""
    world = make_world(open_kept())
    queue = world.queue()
    text = json.dumps({"token": "t", "host": "elsewhere", "pid": 1})
    open_kept.client.set("ssq:lease", text)
    with pytest.raises(ServiceUnavailable, match="process 1 on host elsewhere"):
        world.send(queue, "a")
    assert open_kept.client.hgetall("ssq:msg:000000000000:us-east-1:orders") == {}


def test_what_an_old_connection_sent_is_refused_once_there_is_a_new_one(
    open_kept, make_world
) -> None:
    """As after a Redis that hung: the commands of both connections are there, in any order."""
    world = make_world(open_kept())
    queue = world.queue()
    link = world.store._link
    old, link._connection = link._connection, None
    world.send(queue, "new")
    old.send_packed_command(
        old.pack_commands([("MULTI",), ("SET", "late", "1"), ("EXEC",)]), check_health=False
    )
    assert [old.read_response() for _ in range(3)] == [b"OK", b"QUEUED", None]
    assert not open_kept.client.exists("late")
    old.disconnect()
