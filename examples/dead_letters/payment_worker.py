"""A worker that charges cards, and a tool for the person on call when that failed for good."""

import json
import logging

log = logging.getLogger(__name__)


class PaymentWorker:
    """Charges cards. SQS repeats what failed, and puts aside what failed too often."""

    def __init__(self, sqs, queue_url, charge):
        self.sqs = sqs
        self.queue_url = queue_url
        self.charge = charge

    def run_once(self):
        """Try every payment that is waiting now."""
        answer = self.sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10)
        for message in answer.get("Messages", []):
            try:
                self.charge(**json.loads(message["Body"]))
            except Exception:
                log.exception("payment failed, message %s", message["MessageId"])
            else:
                self.sqs.delete_message(
                    QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"]
                )


def try_failed_payments_again(sqs, dead_letter_queue_arn):
    """Send every dead letter back to the queue it came from."""
    sqs.start_message_move_task(SourceArn=dead_letter_queue_arn)
