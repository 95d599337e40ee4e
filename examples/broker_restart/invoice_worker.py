"""A worker that outlives its broker: it waits until that is back, and does no job twice."""

import logging
import threading

import boto3
import botocore.exceptions
from botocore.config import Config

NOBODY_ANSWERS = (botocore.exceptions.ConnectionError, botocore.exceptions.HTTPClientError)

log = logging.getLogger(__name__)


def create_client():
    """A client that does not repeat requests by itself: the worker does, as long as it takes."""
    return boto3.client("sqs", config=Config(retries={"total_max_attempts": 1}))


class InvoiceWorker(threading.Thread):
    """Writes an invoice for each order.

    What is written is acknowledged sooner or later: a delete that fails is tried again, with the
    same receipt handle, before the next order is asked for.
    """

    def __init__(self, sqs, queue_url, write_invoice, pause=1.0):
        super().__init__(name="invoice worker")
        self.sqs = sqs
        self.queue_url = queue_url
        self.write_invoice = write_invoice
        self.pause = pause
        self._stopping = threading.Event()

    def run(self):
        while not self._stopping.is_set():
            answer = self._insist(self.sqs.receive_message, WaitTimeSeconds=20)
            for message in answer.get("Messages", []):
                self.write_invoice(message["Body"])
                self._insist(self.sqs.delete_message, ReceiptHandle=message["ReceiptHandle"])

    def ask_to_stop(self):
        """Let the thread end after its present poll."""
        self._stopping.set()

    def _insist(self, request, **parameters):
        """Ask again and again until the broker answers; an empty answer if it is time to stop."""
        while True:
            try:
                return request(QueueUrl=self.queue_url, **parameters)
            except NOBODY_ANSWERS as error:
                log.warning("the broker is away: %s", error)
            except botocore.exceptions.ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
                    raise
                log.warning("the broker is in trouble: %s", error)
            if self._stopping.wait(self.pause):
                return {}
