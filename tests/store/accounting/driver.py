"""A server in a process of its own, to be killed.

Arguments: the store's URL and a port.  It prints its URL, and for each line of the input the bodies
that its queues hold; it stops at the end of the input.
"""

from __future__ import annotations

import json
import sys

from pytest_sqsq import SqsServer


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(store: str, port: str) -> None:
    with SqsServer(store=store, port=int(port)) as server:
        tell(server.url)
        for _ in sys.stdin:
            # Whatever the store could not be told, it is told now.
            server.tick()
            held = {queue.name: [m.body for m in queue.messages()] for queue in server.queues}
            tell(json.dumps(held))


if __name__ == "__main__":
    main(*sys.argv[1:])
