"""The queues of an alarm service, as its set-up script creates them."""

import json

FOUR_DAYS = 4 * 24 * 3600
FOURTEEN_DAYS = 14 * 24 * 3600


def create_queues(sqs):
    """Create ``alarms`` and its dead-letter queue; returns both URLs.

    A dead letter keeps the age it had, so its queue must keep messages for longer than the first.
    """
    dead = sqs.create_queue(
        QueueName="dead-alarms", Attributes={"MessageRetentionPeriod": str(FOURTEEN_DAYS)}
    )["QueueUrl"]
    dead_arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]
    redrive = {"deadLetterTargetArn": dead_arn["QueueArn"], "maxReceiveCount": 1}
    alarms = sqs.create_queue(
        QueueName="alarms",
        Attributes={
            "MessageRetentionPeriod": str(FOUR_DAYS),
            "RedrivePolicy": json.dumps(redrive),
        },
    )["QueueUrl"]
    return alarms, dead
