from __future__ import annotations

import pytest

from .faults import (
    batches,
    messages,
    move_tasks,
    permissions,
    queue_attributes,
    queues,
    redrive_policies,
)

FAULTS = [
    pytest.param(fault, id=f"{module.__name__.rpartition('.')[2]}-{fault.action}")
    for module in (
        batches,
        messages,
        move_tasks,
        permissions,
        queue_attributes,
        queues,
        redrive_policies,
    )
    for fault in module.FAULTS
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_answered_with_the_code_status_and_text_of_sqs(wire, fault):
    refusal = wire.refusal(fault.action, fault.parameters)

    assert refusal == (fault.code, fault.status, wire.wording(fault.text))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_refused_request_changes_nothing(prepared, fault):
    before = prepared.everything()
    prepared.clock.advance(60)

    prepared.error(fault.action, **fault.parameters)

    assert prepared.everything() == before
