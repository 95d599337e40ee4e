"""A worker whose jobs take minutes: while it works on one, a heartbeat keeps the message hidden."""

import logging
import threading

log = logging.getLogger(__name__)


class Repeating(threading.Thread):
    """Calls a function every so many seconds until it is cancelled."""

    def __init__(self, seconds, function):
        super().__init__(name="heartbeat", daemon=True)
        self.seconds = seconds
        self.function = function
        self._cancelled = threading.Event()
        self.start()

    def run(self):
        while not self._cancelled.wait(self.seconds):
            self.function()

    def cancel(self):
        self._cancelled.set()


class VideoWorker(threading.Thread):
    """Transcodes videos, one at a time.

    A message is hidden for 30 seconds only, and then for 30 more every 20. So a video is back
    soon after its worker has died, however long videos take.
    """

    def __init__(self, sqs, queue_url, transcode, call_every=Repeating):
        super().__init__(name="video worker")
        self.sqs = sqs
        self.queue_url = queue_url
        self.transcode = transcode
        self.call_every = call_every
        self._stopping = threading.Event()

    def run(self):
        while not self._stopping.is_set():
            answer = self.sqs.receive_message(
                QueueUrl=self.queue_url, VisibilityTimeout=30, WaitTimeSeconds=20
            )
            for message in answer.get("Messages", []):
                self._work_on(message)

    def ask_to_stop(self):
        """Let the thread end after its present poll."""
        self._stopping.set()

    def _work_on(self, message):
        heartbeat = self.call_every(20, lambda: self._keep_hidden(message))
        try:
            self.transcode(message["Body"])
        except Exception:
            log.exception("could not transcode %s", message["Body"])
            return
        finally:
            heartbeat.cancel()
        self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])

    def _keep_hidden(self, message):
        self.sqs.change_message_visibility(
            QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=30
        )
