"""A Lambda function that sends welcome mails, and reports which of a batch it could not send."""

import json
from email.message import EmailMessage
from smtplib import SMTP, SMTPRecipientsRefused


def send_mail(address):
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "hello@example.com", address, "Welcome"
    mail.set_content("Good to have you here.")
    with SMTP("mail.example.com") as smtp:
        smtp.send_message(mail)


def handler(event, context):
    """Work through a batch; only what failed comes back, as ReportBatchItemFailures allows."""
    failures = []
    for record in event["Records"]:
        try:
            send_mail(json.loads(record["body"])["address"])
        except SMTPRecipientsRefused:
            failures.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failures}
