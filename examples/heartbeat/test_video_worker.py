import threading
from datetime import timedelta

import pytest
from video_worker import Repeating, VideoWorker

# The worker does not poll while it transcodes. Time need not wait for it to come back.
pytestmark = pytest.mark.sqsq(clock="frozen", autojump_grace=0.02)

# Real seconds; a passing test never waits this long.
LONG = 10


class Transcoder:
    """Stands in for the real one: a video takes as long as it says, on the server's clock."""

    def __init__(self, clock):
        self.clock = clock
        self.begun = threading.Semaphore(0)
        self.ended = threading.Event()

    def __call__(self, video):
        self.ended.clear()
        self.clock.call_at(self.clock.now + timedelta(seconds=int(video)), self.ended.set)
        self.begun.release()
        assert self.ended.wait(LONG)


@pytest.fixture
def transcoder(sqs_server):
    return Transcoder(sqs_server.clock)


@pytest.fixture
def start_worker(sqs_server, sqs_client, sqs_queue):
    """Start a worker whose heart beats on the server's clock; it is stopped after the test."""
    started = []

    def start(transcode):
        clock = sqs_server.clock
        started.append(VideoWorker(sqs_client, sqs_queue.url, transcode, clock.call_every))
        started[-1].start()
        sqs_server.wait_for_pollers(1, queue=sqs_queue)

    yield start
    for worker in started:
        sqs_server.wait_for_pollers(1, queue=sqs_queue)
        worker.ask_to_stop()
        sqs_server.advance(20)
        worker.join(LONG)


def test_a_video_of_ten_minutes_is_transcoded_once(start_worker, transcoder, sqs_server, sqs_queue):
    start_worker(transcoder)
    start = sqs_server.now
    sqs_queue.send("610")
    assert transcoder.begun.acquire(timeout=LONG)

    sqs_server.run_until(transcoder.ended.is_set)
    sqs_queue.wait_until_empty()

    assert (sqs_server.now - start).total_seconds() == 610
    sqs_queue.assert_received(body="610", times=1)
    sqs_queue.assert_visibility_extended(body="610", times=30)


def test_a_video_is_back_thirty_seconds_after_the_last_heartbeat(
    start_worker, transcoder, sqs_server, sqs_queue
):
    attempts = []

    def crash_at_first(video):
        attempts.append(sqs_server.now)
        transcoder(video)
        if len(attempts) == 1:
            raise MemoryError

    start_worker(crash_at_first)
    sqs_queue.send("90")
    assert transcoder.begun.acquire(timeout=LONG)
    sqs_server.run_until(transcoder.ended.is_set)
    sqs_server.wait_for_pollers(1, queue=sqs_queue)

    sqs_queue.assert_in_flight(body="90", for_seconds=20)
    sqs_server.advance(20)
    assert transcoder.begun.acquire(timeout=LONG)
    sqs_server.run_until(transcoder.ended.is_set)
    sqs_queue.wait_until_empty()

    assert (attempts[1] - attempts[0]).total_seconds() == 110


def test_a_heart_beats_until_it_is_cancelled():
    beat = threading.Event()
    heart = Repeating(0.001, beat.set)

    assert beat.wait(LONG)
    heart.cancel()
    heart.join(LONG)

    assert not heart.is_alive()
