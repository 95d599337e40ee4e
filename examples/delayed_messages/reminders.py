"""Reminders at any time ahead, though SQS delays a message for 15 minutes at most."""

import json
from datetime import timedelta

LONGEST_DELAY = timedelta(minutes=15)


def remind(sqs, queue_url, text, wait):
    """Queue a reminder that is due after ``wait``."""
    delay = min(wait, LONGEST_DELAY)
    sqs.send_message(
        QueueUrl=queue_url,
        MessageBody=json.dumps({"text": text, "then_wait": (wait - delay).total_seconds()}),
        DelaySeconds=round(delay.total_seconds()),
    )


def work_on_reminders(sqs, queue_url, notify):
    """Notify about what is due, and put off what is not due yet."""
    answer = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10)
    for message in answer.get("Messages", []):
        reminder = json.loads(message["Body"])
        if reminder["then_wait"]:
            remind(sqs, queue_url, reminder["text"], timedelta(seconds=reminder["then_wait"]))
        else:
            notify(reminder["text"])
        sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
