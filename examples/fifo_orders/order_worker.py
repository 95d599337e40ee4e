"""Orders of many customers on one FIFO queue: in order for each, side by side for all."""

import json


def place_order(sqs, queue_url, customer, number, action):
    """Tell the workers about a step of an order.

    The customer is the message group, so steps of one customer keep their order. The
    deduplication id lets a web request be repeated without the step happening twice.
    """
    return sqs.send_message(
        QueueUrl=queue_url,
        MessageBody=json.dumps({"customer": customer, "number": number, "action": action}),
        MessageGroupId=customer,
        MessageDeduplicationId=f"{customer}-{number}-{action}",
    )["MessageId"]


class OrderWorker:
    """Applies steps to the books. What fails is repeated before anything later of its customer."""

    def __init__(self, sqs, queue_url, apply):
        self.sqs = sqs
        self.queue_url = queue_url
        self.apply = apply

    def run_once(self):
        """Work on the next step; says whether there was one that could be taken."""
        answer = self.sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=1)
        messages = answer.get("Messages", [])
        for message in messages:
            try:
                self.apply(**json.loads(message["Body"]))
            except ConnectionError:
                continue
            self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
        return bool(messages)
