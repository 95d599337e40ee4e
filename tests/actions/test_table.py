from __future__ import annotations

import re

from botocore.loaders import Loader

from pytest_sqsq.actions import ACTIONS


def test_every_operation_of_the_service_model_is_an_action():
    model = Loader().load_service_model("sqs", "service-2")

    assert set(ACTIONS) == set(model["operations"])


def test_an_action_is_a_function_in_snake_case_of_its_name():
    assert {action: act.__name__ for action, act in ACTIONS.items()} == {
        action: re.sub("(?<!^)(?=[A-Z])", "_", action).lower() for action in ACTIONS
    }
