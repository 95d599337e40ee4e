"""Systems that lack what Linux has."""

from __future__ import annotations

import subprocess
import sys

# What Windows does not have, or macOS.
WITHOUT = """
import os
import socket

for module, name in [
    (socket, "MSG_DONTWAIT"),
    (socket, "SO_REUSEPORT"),
    (os, "fork"),
    (os, "register_at_fork"),
]:
    if hasattr(module, name):
        delattr(module, name)
"""

SCENARIO = """
import threading

from botocore.config import Config
from botocore.exceptions import EndpointConnectionError

from pytest_sqsq import SqsServer

with SqsServer(clock="frozen") as server:
    orders = server.create_queue("orders")
    sqs = server.client(config=Config(retries={"total_max_attempts": 1}))
    found = []

    def consume():
        answer = sqs.receive_message(QueueUrl=orders.url, WaitTimeSeconds=20)
        found.append(answer["Messages"][0]["Body"])

    consumer = threading.Thread(target=consume)
    consumer.start()
    server.wait_for_pollers(1)
    orders.send("to a parked poll")
    consumer.join()
    assert found == ["to a parked poll"]

    body = f'{{"QueueUrl": "{orders.url}", "WaitTimeSeconds": 20}}'
    head = (
        "POST / HTTP/1.1", "Host: localhost", "X-Amz-Target: AmazonSQS.ReceiveMessage",
        "Content-Type: application/x-amz-json-1.0", f"Content-Length: {len(body)}", "", "",
    )
    with socket.create_connection(("127.0.0.1", server.port)) as impatient:
        impatient.sendall(("\\r\\n".join(head) + body).encode())
        server.wait_for_pollers(1)
    orders.send("to a client that has gone")
    orders.assert_contains(body="to a client that has gone", state="visible")

    port = server.port
    with server.outage():
        try:
            sqs.list_queues()
        except EndpointConnectionError:
            pass
        else:
            raise AssertionError("was answered")
    server.restart()
    assert server.port == port
    assert sqs.list_queues()["QueueUrls"] == [orders.url]

with SqsServer(port=port) as again:
    assert again.port == port
print("all is well")
"""


def test_a_server_does_without_what_only_some_systems_have() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT + SCENARIO], capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.stderr) == ("all is well\n", "")
