from __future__ import annotations

import os
import socket
import threading
import warnings
from queue import Queue
from time import monotonic

import pytest

from pytest_sqsq.errors import ServerStartError
from pytest_sqsq.http.server import ConnectionInfo, HttpServer
from pytest_sqsq.protocol import HttpResponse

GET = b"GET / HTTP/1.1\r\nHost: sqs.test\r\n\r\n"
WAIT = b"GET /wait HTTP/1.1\r\nHost: sqs.test\r\n\r\n"
HOLD = b"GET /hold HTTP/1.1\r\nHost: sqs.test\r\n\r\n"
LONG = 5.0


def eventually(condition) -> None:
    """Look again and again, since the other side of a socket tells nobody when it has noticed."""
    until = monotonic() + LONG
    while not condition():
        assert monotonic() < until


def is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=LONG).close()
    except ConnectionRefusedError:
        return True
    return False


def test_takes_a_free_port_and_serves_on_it(server, client):
    assert server.port > 0
    assert client.send(GET).answer()[0] == 200


def test_serves_on_ipv6(application, run):
    server = HttpServer(application, host="::1")
    server.start()
    with socket.create_connection(("::1", server.port), timeout=LONG) as client:
        client.sendall(GET)
        assert client.recv(1) == b"H"
    assert application.next_request().client_address.startswith("[::1]:")
    server.stop()


def test_a_taken_port_is_an_error_that_names_address_and_reason(application, server):
    with pytest.raises(ServerStartError) as caught:
        HttpServer(application, port=server.port)
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1:{server.port}: {os.strerror(98)}; choose another port, or 0"
        " for a free one"
        if os.name == "posix" and os.uname().sysname == "Linux"
        else str(caught.value)
    )
    assert str(server.port) in str(caught.value)


@pytest.mark.parametrize(("host", "port"), [("203.0.113.1", 0), ("127.0.0.1", 65_536)])
def test_an_impossible_address_is_an_error_that_names_it(application, host, port):
    with pytest.raises(ServerStartError, match=rf"cannot listen on {host}:{port}: \S"):
        HttpServer(application, host=host, port=port)


def test_a_stopped_servers_port_can_be_taken_at_once(application, server, client):
    application.answer.close = True
    client.send(GET).answer()
    server.stop()
    application.answer.close = False
    successor = HttpServer(application, port=server.port)
    successor.start()
    with socket.create_connection(("127.0.0.1", server.port), timeout=LONG) as other:
        other.sendall(GET)
        assert other.recv(1) == b"H"
    successor.stop()


def test_connections_show_who_is_connected_and_working(application, server, connect):
    assert server.connections == ()
    idle, waiting = connect(), connect()
    idle.send(GET).answer()
    waiting.send(WAIT)
    application.wait_for_parked(1)
    eventually(lambda: ConnectionInfo(idle.address, False) in server.connections)
    assert ConnectionInfo(waiting.address, True) in server.connections
    idle.socket.close()
    eventually(lambda: [each.address for each in server.connections] == [waiting.address])


def test_suspending_refuses_clients_and_keeps_strangers_off_the_port(server, client):
    client.send(GET).answer()
    server.suspend()
    assert is_refused(server.port)
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "SO_REUSEPORT"):
            with pytest.raises(OSError, match=r"."):
                stranger.bind(("127.0.0.1", server.port))
    assert client.send(GET).answer()[0] == 200


def test_resuming_listens_on_the_same_port(server, connect):
    port = server.port
    for _ in range(3):
        server.suspend()
        assert is_refused(port)
        server.resume()
        assert server.port == port
        assert connect().send(GET).answer()[0] == 200


def test_a_suspended_server_can_be_stopped(server):
    server.suspend()
    server.stop()
    assert is_refused(server.port)


def test_stopping_closes_idle_connections_and_refuses_new_ones(server, connect):
    used, unused = connect(), connect()
    used.send(GET).answer()
    eventually(lambda: len(server.connections) == 2)
    server.stop()
    assert used.is_closed()
    assert unused.is_closed()
    assert is_refused(server.port)
    assert server.connections == ()


def test_stopping_answers_parked_polls_with_an_end_of_the_connection(application):
    server = HttpServer(application, end_polls=application.let_go.set)
    server.start()
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for client in clients:
        client.sendall(WAIT)
    application.wait_for_parked(20)
    server.stop(timeout=LONG)
    for client in clients:
        received = b""
        while octets := client.recv(65536):
            received += octets
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nConnection: close\r\n" in received
        client.close()


def test_stopping_cuts_what_does_not_end(application, server, client):
    client.send(HOLD)
    application.next_request()
    server.stop(timeout=0.01)
    assert client.is_closed()


def test_stopping_ends_all_threads(application, connect, server):
    for client in [connect() for _ in range(5)]:
        client.send(GET).answer()
    before = {each for each in threading.enumerate() if each.name.startswith("sqsq-")}
    assert len(before) >= 6
    server.stop(timeout=LONG)
    eventually(lambda: not any(each.is_alive() for each in before))


def test_stopping_twice_changes_nothing(server):
    server.stop()
    server.stop()


def test_a_request_may_stop_the_server_that_answers_it(application, server, client, monkeypatch):
    def handle(_request):
        server.stop()
        return HttpResponse(200, [], b"")

    monkeypatch.setattr(application, "handle", handle)
    assert client.send(GET).is_closed()
    assert is_refused(server.port)


def test_closing_connections_spares_requests_being_worked_on(application, server, connect):
    idle, waiting = connect(), connect()
    idle.send(GET).answer()
    waiting.send(WAIT)
    application.wait_for_parked(1)
    eventually(lambda: ConnectionInfo(idle.address, False) in server.connections)
    server.close_connections()
    assert idle.is_closed()
    application.let_go.set()
    status, headers, _ = waiting.answer()
    assert (status, headers["connection"]) == (200, "close")
    assert waiting.is_closed()
    assert connect().send(GET).answer()[0] == 200


def test_cutting_connections_leaves_no_answer(application, server, connect):
    waiting = connect().send(WAIT)
    application.wait_for_parked(1)
    server.cut_connections()
    application.let_go.set()
    assert waiting.is_closed()
    assert connect().send(GET).answer()[0] == 200


def test_a_request_cut_while_the_gate_is_closed_is_never_performed(application, server, connect):
    client = connect()
    client.send(GET).answer()
    application.next_request()
    with application.gate.closed():
        client.send(GET)
        eventually(lambda: ConnectionInfo(client.address, True) in server.connections)
        server.cut_connections()
    eventually(lambda: server.connections == ())
    assert application.requests.empty()


def test_a_connection_beyond_the_bound_is_told_so(application):
    server = HttpServer(application, max_connections=2)
    server.start()

    def connect() -> socket.socket:
        return socket.create_connection(("127.0.0.1", server.port), timeout=LONG)

    kept = [connect(), connect()]
    for each in kept:
        each.sendall(GET)
        assert each.recv(65536).startswith(b"HTTP/1.1 200")
    refused = connect()
    refused.sendall(GET)
    received = b""
    while octets := refused.recv(65536):
        received += octets
    assert received.startswith(b"HTTP/1.1 503 ")
    assert b"#ServiceUnavailable" in received
    kept[0].close()

    def is_served() -> bool:
        with connect() as client:
            client.sendall(GET)
            return client.recv(65536).startswith(b"HTTP/1.1 200")

    eventually(is_served)
    server.stop()
    for each in (*kept, refused):
        each.close()


def test_threads_serve_one_connection_after_another(application, server, monkeypatch):
    threads: Queue[int] = Queue()

    def handle(_request):
        threads.put(threading.get_ident())
        return HttpResponse(200, [], b"", close=True)

    monkeypatch.setattr(application, "handle", handle)
    for _ in range(100):
        with socket.create_connection(("127.0.0.1", server.port), timeout=LONG) as client:
            client.sendall(GET)
            while client.recv(65536):
                pass
    assert len({threads.get() for _ in range(100)}) < 20


def test_many_clients_at_once_each_get_their_own_answers(server, connect, run):
    failures: Queue[object] = Queue()

    def talk(number: int) -> None:
        client = connect()
        for turn in range(30):
            body = f"{number}:{turn}".encode()
            request = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
            if client.send(request + body).answer()[2] != body:
                failures.put((number, turn))

    threads = [run(lambda number=number: talk(number)) for number in range(16)]
    for thread in threads:
        thread.join()
    assert failures.empty()


def test_nothing_is_printed_whatever_clients_do(connect, capfd):
    for octets in (b"\x16\x03\x01", b"GET /", b"GET / HTTP/1.1\r\n\r\n", b"broken\r\n\r\n"):
        connect().send(octets).socket.close()
    assert connect().send(GET).answer()[0] == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_keeps_neither_the_port_nor_connections(application, server, client):
    client.send(GET).answer()
    forked, tell_forked = os.pipe()
    may_end, end = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of forks beside threads, which is what this is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(end)
        os.write(tell_forked, b"1")
        os.read(may_end, 1)
        os._exit(0)
    try:
        os.read(forked, 1)
        application.answer.close = True
        client.send(GET).answer()
        assert client.is_closed()
        server.stop()
        assert is_refused(server.port)
        HttpServer(application, port=server.port).stop()
    finally:
        for descriptor in (may_end, end, forked, tell_forked):
            os.close(descriptor)
        os.waitpid(child, 0)
