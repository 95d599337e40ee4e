import json
from smtplib import SMTPRecipientsRefused

import pytest
import signup_handler

pytestmark = pytest.mark.sqsq(clock="frozen")


@pytest.fixture
def mails(monkeypatch):
    """The addresses that got a mail; those at example.invalid are refused."""
    sent = []

    def send_mail(address):
        if address.endswith(".invalid"):
            raise SMTPRecipientsRefused({address: (550, b"no such user")})
        sent.append(address)

    monkeypatch.setattr(signup_handler, "send_mail", send_mail)
    return sent


@pytest.fixture
def signups(sqs_server):
    return sqs_server.create_queue(
        "signups", dead_letter_queue="refused-signups", max_receive_count=5
    )


def sign_up(queue, address):
    return queue.send(json.dumps({"address": address}))


def test_only_what_failed_comes_back(mails, sqs_server, signups):
    sign_up(signups, "ann@example.com")
    bad = sign_up(signups, "bob@example.invalid")
    sign_up(signups, "cid@example.com")

    invocation = signups.invoke_lambda(signup_handler.handler)

    assert mails == ["ann@example.com", "cid@example.com"]
    assert [view.message_id for view in invocation.failed] == [bad.message_id]
    assert len(invocation.deleted) == 2
    signups.assert_counts(visible=0, in_flight=1)

    sqs_server.advance(30)
    signups.assert_counts(visible=1, in_flight=0)


def test_an_address_that_never_works_ends_among_the_dead_letters(mails, sqs_server, signups):
    sign_up(signups, "ann@example.com")
    sign_up(signups, "bob@example.invalid")

    report = signups.drain(signup_handler.handler, lambda_events=True)

    assert (report.invocations, report.deleted, report.dead_lettered) == (5, 1, 1)
    signups.assert_dead_lettered(body=lambda text: "bob" in text)
    sqs_server.queue("refused-signups").assert_counts(visible=1)
    assert mails == ["ann@example.com"]


def test_a_handler_that_crashes_keeps_the_whole_batch(monkeypatch, signups):
    def crash(address):
        raise RuntimeError("no network")

    monkeypatch.setattr(signup_handler, "send_mail", crash)
    sign_up(signups, "ann@example.com")
    sign_up(signups, "cid@example.com")

    with pytest.raises(RuntimeError, match="no network"):
        signups.invoke_lambda(signup_handler.handler)

    signups.assert_counts(in_flight=2)
