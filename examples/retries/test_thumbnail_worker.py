import json

import pytest
from thumbnail_worker import StorageFullError, ThumbnailWorker

pytestmark = pytest.mark.sqsq(clock="frozen")

JOB = json.dumps({"image": "cat.png"})


class Renderer:
    """Stands in for the real one: raises what it was told to, then works."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.rendered = []

    def __call__(self, image):
        if self.errors:
            raise self.errors.pop(0)
        self.rendered.append(image)


@pytest.fixture
def make_worker(sqs_client, sqs_queue):
    def make(renderer):
        return ThumbnailWorker(sqs_client, sqs_queue.url, renderer)

    return make


def test_a_finished_job_is_deleted(make_worker, sqs_queue):
    renderer = Renderer()
    sqs_queue.send(JOB)

    assert make_worker(renderer).run_once()

    assert renderer.rendered == ["cat.png"]
    sqs_queue.assert_deleted(body=JOB)


def test_a_failed_job_comes_back_after_thirty_seconds(make_worker, sqs_server, sqs_queue):
    renderer = Renderer(OSError("disk fell off"))
    worker = make_worker(renderer)
    sqs_queue.send(JOB)

    worker.run_once()
    sqs_queue.assert_in_flight(body=JOB, for_seconds=30)

    sqs_server.advance(29.999)
    assert not worker.run_once()

    sqs_server.advance(0.001)
    assert worker.run_once()
    assert renderer.rendered == ["cat.png"]
    sqs_queue.assert_received(body=JOB, times=2)
    sqs_queue.assert_empty()


def test_a_job_waits_ten_minutes_while_the_storage_is_full(make_worker, sqs_server, sqs_queue):
    worker = make_worker(Renderer(StorageFullError()))
    sqs_queue.send(JOB)

    worker.run_once()
    sqs_queue.assert_visibility_extended(body=JOB, times=1)

    sqs_server.advance(599)
    assert not worker.run_once()

    sqs_server.advance(1)
    assert worker.run_once()
    sqs_queue.assert_empty()
