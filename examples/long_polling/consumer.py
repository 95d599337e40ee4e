"""A consumer that runs in a thread of its own and waits for messages by long polling."""

import logging
import threading

log = logging.getLogger(__name__)


class Consumer:
    """Hands each message to a function; start it once, and stop it when the service ends."""

    def __init__(self, sqs, queue_url, handle):
        self.sqs = sqs
        self.queue_url = queue_url
        self.handle = handle
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="consumer")

    def start(self):
        self._thread.start()

    def stop(self, timeout=None):
        """Ask the thread to end after its present poll, and wait for it."""
        self._stopping.set()
        self._thread.join(timeout)

    def ask_to_stop(self):
        """As ``stop``, without waiting."""
        self._stopping.set()

    def _run(self):
        while not self._stopping.is_set():
            answer = self.sqs.receive_message(
                QueueUrl=self.queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=20
            )
            for message in answer.get("Messages", []):
                self._work_on(message)

    def _work_on(self, message):
        try:
            self.handle(message["Body"])
        except Exception:
            log.exception("message %s failed", message["MessageId"])
            return
        self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
