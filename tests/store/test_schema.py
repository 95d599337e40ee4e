"""What lies in Redis, as docs/reference/store.md tells it."""

from __future__ import annotations

import json
import re

import fakeredis
import pytest
import redis

from pytest_sqsq.errors import ServerStartError, StoreRefused
from pytest_sqsq.models import MessageAttribute
from pytest_sqsq.store import make_store, plugin_prefix

KEY = "000000000000:us-east-1:orders.fifo"


@pytest.fixture
def world(open_kept, make_world):
    return make_world(open_kept())


@pytest.fixture
def client(open_kept):
    return open_kept.client


def writes(client) -> int:
    return int(client.hget("ssq:schema", "writes"))


def test_the_keys_are_those_of_the_table(world, client) -> None:
    queue = world.queue("orders.fifo")
    world.send(queue, "a", message_deduplication_id="1")
    world.broker.start_move_task(queue, queue.arn, 1)
    assert {key: client.type(key) for key in client.scan_iter()} == {
        "ssq:queues": "set",
        f"ssq:meta:{KEY}": "string",
        f"ssq:msg:{KEY}": "hash",
        f"ssq:dedup:{KEY}": "hash",
        "ssq:tasks": "hash",
        "ssq:clock": "string",
        "ssq:lease": "string",
        "ssq:schema": "hash",
    }
    assert client.smembers("ssq:queues") == {KEY}
    assert int(client.get("ssq:clock")) == world.clock.now_ms
    assert client.hget("ssq:schema", "version") == "1"
    assert client.hget("ssq:schema", "creator") == "server"


def test_a_message_is_one_field_with_names_of_sqs(world, client) -> None:
    queue = world.queue("orders.fifo")
    attributes = {"n": MessageAttribute("Number", "1"), "b": MessageAttribute("Binary", b"\xff")}
    [sent] = world.send(queue, "ä", message_deduplication_id="1", attributes=attributes)
    [(message_id, text)] = client.hgetall(f"ssq:msg:{KEY}").items()
    assert message_id == sent.message_id
    assert "ä" in text
    assert json.loads(text) == {
        "arrival": 0,
        "body": "ä",
        "attributes": {
            "n": {"data_type": "Number", "string_value": "1"},
            "b": {"data_type": "Binary", "binary_value": "/w=="},
        },
        "sent_ms": world.clock.now_ms,
        "retention_start_ms": world.clock.now_ms,
        "receive_count": 0,
        "receives_here": 0,
        "message_group_id": "g",
        "message_deduplication_id": "1",
        "sequence_number": str(sent.sequence_number),
        "carries_delay": True,
    }
    assert client.hgetall(f"ssq:dedup:{KEY}") == {
        '[null,"1"]': json.dumps(
            {
                "message_id": sent.message_id,
                "sequence_number": str(sent.sequence_number),
                "accepted_ms": world.clock.now_ms,
            },
            separators=(",", ":"),
        )
    }


def test_the_meta_of_a_queue_holds_no_messages(world, client) -> None:
    queue = world.queue("orders.fifo", tags={"team": "blue"}, visibility_timeout=5)
    [first, *_] = world.send(queue, *"abc")
    meta = json.loads(client.get(f"ssq:meta:{KEY}"))
    limit = int(meta.pop("sequence_limit"))
    assert (limit - first.sequence_number) // 256 in range(10_000, 10_010)
    assert meta == {
        "attributes": {"fifo": True, "visibility_timeout": 5},
        "tags": {"team": "blue"},
        "created_ms": world.clock.now_ms,
        "last_modified_ms": world.clock.now_ms,
        "deduplication_scope": "queue",
    }


def test_sequence_numbers_are_reserved_ten_thousand_at_a_time(world, client) -> None:
    queue = world.queue("orders.fifo")
    numbers, limits = [], set()
    for _ in range(1_001):
        numbers += [receipt.sequence_number for receipt in world.send(queue, *"0123456789")]
        limits.add(json.loads(client.get(f"ssq:meta:{KEY}"))["sequence_limit"])
        world.broker.purge(queue)
    assert len(limits) == 2
    world = world.crashed()
    [after] = world.send(world.queue("orders.fifo"), "a")
    assert after.sequence_number > max(numbers)
    assert after.sequence_number >= int(max(limits))


def test_each_change_is_one_transaction(world, client) -> None:
    orders, dead = world.dead_lettering("orders", "dead"), world.queue("dead")
    before = writes(client)
    world.send(orders, *"0123456789")
    assert writes(client) == before + 1
    held = world.receive(orders)
    assert writes(client) == before + 2
    world.delete(orders, *held[:9])
    assert writes(client) == before + 3
    world.advance(30)
    assert world.bodies(dead) == ["9"]
    assert writes(client) == before + 4
    world.receive(orders)
    assert writes(client) == before + 4


def test_a_batch_is_one_command_for_all_its_messages(shared_redis, make_world) -> None:
    client = shared_redis.client
    client.flushall()
    world = make_world(make_store(shared_redis.url))
    queue = world.queue()
    client.config_resetstat()
    world.send(queue, *"abcdefghij")
    world.delete(queue, *world.receive(queue))
    stats = client.info("commandstats")
    assert [stats[f"cmdstat_{name}"]["calls"] for name in ("hset", "hdel")] == [2, 1]


def test_a_receive_writes_count_handle_and_deadline(world, client) -> None:
    queue = world.queue("orders.fifo", visibility_timeout=30)
    world.send(queue, "a")
    [held] = world.receive(queue)
    [text] = client.hvals(f"ssq:msg:{KEY}")
    document = json.loads(text)
    assert document["receive_count"] == document["receives_here"] == 1
    assert document["receipt_handle"] == held.receipt_handle
    assert document["visible_at_ms"] == world.clock.now_ms + 30_000
    assert document["received_ms"] == document["first_received_ms"] == world.clock.now_ms


def test_what_leaves_a_queue_leaves_the_store_at_once(world, client) -> None:
    world.queue("dead.fifo")
    queue = world.dead_lettering(
        "orders.fifo", "dead.fifo", message_retention_period=60, visibility_timeout=30
    )
    world.send(queue, "moves", group="1")
    world.receive(queue)
    world.send(queue, "is deleted", group="2", message_deduplication_id="2")
    world.send(queue, "expires", group="3")
    world.delete(queue, *world.receive(queue, 1))
    assert client.hlen(f"ssq:msg:{KEY}") == 2
    world.advance(30)
    assert client.hlen(f"ssq:msg:{KEY}") == 1
    assert client.hlen("ssq:msg:000000000000:us-east-1:dead.fifo") == 1
    world.advance(30)
    assert not client.exists(f"ssq:msg:{KEY}")
    world.send(queue, "a")
    world.broker.purge(queue)
    assert not client.exists(f"ssq:msg:{KEY}", f"ssq:dedup:{KEY}")
    world.broker.delete_queue(queue)
    assert not client.exists(f"ssq:meta:{KEY}")
    assert client.smembers("ssq:queues") == {"000000000000:us-east-1:dead.fifo"}


def test_a_deduplication_id_leaves_the_store_with_the_write_after_its_window(world, client) -> None:
    queue = world.queue("orders.fifo")
    world.send(queue, "a", message_deduplication_id="1")
    world.advance(300)
    world.send(queue, "a", message_deduplication_id="2")
    assert client.hkeys(f"ssq:dedup:{KEY}") == ['[null,"2"]']


def test_the_clock_follows_the_writes_and_what_is_noted(world, client) -> None:
    world.send(world.queue("orders.fifo"), "a")
    world.advance(1000)
    world.broker.note_time()
    assert int(client.get("ssq:clock")) == world.clock.now_ms
    start_ms = world.clock.now_ms
    world = world.crashed(after=-500)
    assert world.store.settled_ms == start_ms == world.clock.now_ms


@pytest.mark.parametrize(
    "write",
    [
        lambda client: client.hset("ssq:schema", mapping={"version": 2, "creator": "server"}),
        lambda client: client.set("ssq:schema", '{"version": 2}'),
        lambda client: client.set("ssq:schema", "99"),
        lambda client: client.hset("ssq:schema", "other", 1),
    ],
)
def test_data_of_a_newer_schema_is_refused_and_not_touched(open_kept, write) -> None:
    write(open_kept.client)
    before = {key: open_kept.client.dump(key) for key in open_kept.client.scan_iter()}
    with pytest.raises(StoreRefused, match=r"schema of 'ssq:' in .* knows schema 1: .*newer"):
        open_kept()
    assert {key: open_kept.client.dump(key) for key in open_kept.client.scan_iter()} == before
    open_kept(prefix="other:")


@pytest.mark.parametrize("creator", ["server", "plugin"])
@pytest.mark.parametrize("key", ["queues", "tasks", "clock"])
def test_keys_of_somebody_else_are_refused_and_not_touched(open_kept, key: str, creator) -> None:
    open_kept.client.set(f"app:{key}", "not ours")
    with pytest.raises(
        StoreRefused, match=rf"key 'app:{key}' .* there is no 'app:schema' beside it. Choose"
    ):
        open_kept(prefix="app:", creator=creator)
    assert open_kept.client.keys() == [f"app:{key}"]


@pytest.mark.parametrize("kind", ["meta", "msg", "dedup"])
@pytest.mark.parametrize("text", ["no JSON", "[]", "{}", "null"])
def test_data_that_cannot_be_read_is_told_of(open_fake, make_world, kind: str, text: str) -> None:
    world = make_world(open_fake())
    world.send(world.queue("orders.fifo"), "a", message_deduplication_id="1")
    key, client = f"ssq:{kind}:{KEY}", open_fake.client
    if kind == "meta":
        client.set(key, text)
    else:
        client.hset(key, client.hkeys(key)[0], text)
    with pytest.raises(StoreRefused, match=f"'{key}' cannot be read: .*Remove or mend it"):
        world.crashed()


def test_prefixes_are_worlds_of_their_own(open_kept, make_world) -> None:
    one, other = make_world(open_kept()), make_world(open_kept(prefix=plugin_prefix("gw0")))
    one.send(one.queue(), "a")
    other.send(other.queue(), "b")
    other.store.erase()
    assert one.crashed().loaded == (1, 1)
    assert other.crashed().loaded == (0, 0)
    assert sorted(key for key in open_kept.client.scan_iter() if "test" in key) == [
        "ssq:test:gw0:lease",
        "ssq:test:gw0:schema",
    ]


def test_the_plugin_empties_only_what_it_made(open_kept) -> None:
    open_kept(creator="server").close()
    store = open_kept(creator="plugin")
    with pytest.raises(StoreRefused, match="made by the server, and the plugin empties only"):
        store.erase()
    assert open_kept.client.exists("ssq:schema")
    assert store.made_by == "server"


def test_a_client_is_only_an_address(shared_redis, make_world) -> None:
    client = redis.Redis(
        unix_socket_path=str(shared_redis.socket), db=3, decode_responses=True, socket_timeout=60
    )
    client.flushdb()
    world = make_world(make_store(client))
    world.send(world.queue(), "ä")
    assert world.crashed().loaded == (1, 1)
    assert client.exists("ssq:queues")
    client.close()


def test_fakeredis_is_new_and_empty_each_time(make_world) -> None:
    one, other = make_world(make_store("fakeredis")), make_world(make_store("fakeredis"))
    one.send(one.queue(), "a")
    assert other.crashed().loaded == (0, 0)
    assert one.crashed().loaded == (1, 1)


def test_a_closed_store_can_be_reopened(open_store, make_world) -> None:
    world = make_world(open_store())
    world.send(world.queue(), "a")
    world.broker.close()
    assert world.restarted().loaded == (1, 1)


@pytest.mark.parametrize("option", ["postgres://host", "", "mem", 7, object()])
def test_an_option_that_names_no_store_is_refused(option) -> None:
    with pytest.raises(ValueError, match=f"^store must be .* not {re.escape(repr(option))}$"):
        make_store(option)


def test_a_redis_that_is_not_there_is_told_of_without_its_password(tmp_path) -> None:
    with pytest.raises(ServerStartError, match="cannot be used as a store") as refused:
        make_store(f"unix://user:secret@{tmp_path}/none")
    assert str(tmp_path) in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_cluster_of_fakes_is_no_single_server() -> None:
    with pytest.raises(ValueError, match="one Redis server"):
        make_store(fakeredis.FakeAsyncRedis())


def test_a_redis_is_reached_through_its_unix_socket(shared_redis, make_world) -> None:
    shared_redis.client.flushall()
    world = make_world(make_store(f"unix://{shared_redis.socket}?db=2"))
    world.send(world.queue(), "a")
    assert world.crashed().loaded == (1, 1)
    assert not shared_redis.client.exists("ssq:queues")
