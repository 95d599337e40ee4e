"""An outbox: what SQS does not take now stays there, in order, and is sent with the next try."""

import boto3
import botocore.exceptions
from botocore.config import Config

NOBODY_ANSWERS = (botocore.exceptions.ConnectionError, botocore.exceptions.HTTPClientError)
THROTTLED = {"RequestThrottled", "ThrottlingException", "KMS.ThrottlingException"}


def create_client():
    """A client that does not repeat requests by itself: the outbox does, and later."""
    return boto3.client("sqs", config=Config(retries={"total_max_attempts": 1}))


class Outbox:
    def __init__(self, sqs, queue_url):
        self.sqs = sqs
        self.queue_url = queue_url
        self.waiting = []

    def put(self, text):
        self.waiting.append(text)

    def flush(self):
        """Send what is waiting, as far as SQS takes it; says whether that was all."""
        while self.waiting:
            batch = self.waiting[:10]
            refused = self._send(batch)
            self.waiting[:10] = refused
            if refused:
                return False
        return True

    def _send(self, texts):
        """Send a batch; returns those that were not taken."""
        entries = [{"Id": str(n), "MessageBody": text} for n, text in enumerate(texts)]
        try:
            answer = self.sqs.send_message_batch(QueueUrl=self.queue_url, Entries=entries)
        except NOBODY_ANSWERS:
            return texts
        except botocore.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in THROTTLED:
                return texts
            raise
        return [texts[int(entry["Id"])] for entry in answer.get("Failed", [])]
