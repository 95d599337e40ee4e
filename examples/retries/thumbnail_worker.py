"""A worker that makes thumbnails: one job at a time, and no job is lost when one fails."""

import json
import logging

log = logging.getLogger(__name__)


class ThumbnailWorker:
    """Takes jobs off a queue.

    A job is deleted once it is done. A job that fails is left alone: SQS shows it again when its
    visibility timeout ends, and it is tried anew. After a full storage it is not worth trying
    again so soon, so the worker asks SQS to keep the job hidden for longer.
    """

    def __init__(self, sqs, queue_url, render):
        self.sqs = sqs
        self.queue_url = queue_url
        self.render = render

    def run_once(self):
        """Work on the next job, if there is one; says whether there was."""
        answer = self.sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=1)
        for message in answer.get("Messages", []):
            self._work_on(message)
            return True
        return False

    def _work_on(self, message):
        job = json.loads(message["Body"])
        try:
            self.render(job["image"])
        except StorageFullError:
            self.sqs.change_message_visibility(
                QueueUrl=self.queue_url,
                ReceiptHandle=message["ReceiptHandle"],
                VisibilityTimeout=600,
            )
        except Exception:
            log.exception("could not render %s", job["image"])
        else:
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])


class StorageFullError(Exception):
    """There is no room for another thumbnail, and will not be for a while."""
