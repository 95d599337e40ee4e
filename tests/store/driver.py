"""A server reduced to its broker, to be killed: eight threads that say what they ask and get.

Arguments: the store's URL, a seed, the number of threads.  Each line of the output is a JSON list:
what, the bodies it is about, and what else there is to know.
"""

from __future__ import annotations

import json
import os
import sys
from random import Random
from threading import Thread
from typing import Any

from pytest_sqsq.clock import real_now_ms
from pytest_sqsq.engine import Broker, Queue
from pytest_sqsq.models import OutgoingMessage, QueueKey, QueueSettings, ReceiveRequest
from pytest_sqsq.store import make_store


class RealClock:
    @property
    def now_ms(self) -> int:
        return real_now_ms()


def tell(what: str, bodies: list[str], more: Any = None) -> None:
    # One write is one line, whatever the other threads write.
    os.write(1, json.dumps([what, bodies, more]).encode() + b"\n")


def work(broker: Broker, queues: list[Queue], random: Random, number: int) -> None:
    count = 0
    while True:
        count += 1
        queue = random.choice(queues)
        bodies = [f"{number}-{count}.{n}" for n in range(random.randint(1, 3))]
        group = f"{random.randrange(4)}" if queue.settings.fifo else None
        tell("ask send", bodies)
        receipts = broker.send(queue, [OutgoingMessage(b, message_group_id=group) for b in bodies])
        tell("done send", bodies, receipts[-1].sequence_number)
        for delivery in broker.receive(queue, ReceiveRequest(random.randint(1, 3), 43_000)):
            tell("held", [delivery.body], (queue.key.name, delivery.receipt_handle))
            if random.random() < 0.8:
                tell("ask delete", [delivery.body])
                broker.delete(queue, [delivery.receipt_handle])
                tell("done delete", [delivery.body])


def main(url: str, seed: str, threads: str) -> None:
    broker = Broker(RealClock(), store=make_store(url))
    broker.load()
    queues = [
        broker.create_queue(
            QueueKey("000000000000", "us-east-1", name), QueueSettings(fifo=fifo), {}
        )[0]
        for name, fifo in (("orders", False), ("orders.fifo", True))
    ]
    for number in range(int(threads)):
        random = Random(f"{seed} {number}")
        Thread(target=work, args=(broker, queues, random, number)).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
