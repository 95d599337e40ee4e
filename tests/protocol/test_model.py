from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pytest_sqsq.protocol import aws_json, aws_query, decode, model


def test_every_action_has_the_members_of_the_reference():
    operations = model.operations()
    assert len(operations) >= 23
    assert set(operations["CreateQueue"].input.members) >= {"QueueName", "Attributes", "tags"}
    assert operations["DeleteMessage"].output is None
    listing = operations["ListDeadLetterSourceQueues"].output
    assert listing is not None
    assert list(listing.members) == ["queueUrls", "NextToken"]


def test_the_model_is_loaded_once():
    assert model.operations() is model.operations()


@pytest.fixture
def newer_model(monkeypatch):
    """A model in which ListQueues takes members that SQS does not have today."""
    document = model._service_model()
    shapes = {
        **document["shapes"],
        "Instant": {"type": "timestamp"},
        "Instants": {"type": "list", "member": {"shape": "Instant"}},
        "InstantMap": {
            "type": "map",
            "key": {"shape": "String"},
            "value": {"shape": "Instant"},
        },
        "Flag": {"type": "boolean"},
        "NewMap": {"type": "map", "key": {"shape": "String"}, "value": {"shape": "String"}},
        "ListQueuesRequest": {
            "type": "structure",
            "members": {
                "Since": {"shape": "Instant"},
                "Days": {"shape": "Instants"},
                "Times": {"shape": "InstantMap"},
                "Sorted": {"shape": "Flag"},
                "Filters": {"shape": "NewMap"},
            },
        },
    }
    monkeypatch.setattr(model, "_service_model", lambda: {**document, "shapes": shapes})
    caches = (model.operations, aws_json._decoders, aws_query._decoders)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_members_of_types_that_are_not_understood_are_left_out(newer_model):
    members = model.operations()["ListQueues"].input.members
    assert members == {
        "Sorted": model.Scalar("boolean"),
        "Filters": model.MapOf("NewMap", "Name", "Value", model.Scalar("string")),
    }


def test_members_that_a_newer_model_brings_are_decoded(newer_model, json_request, get_request):
    expected = {"Sorted": True, "Filters": {"a": "b"}}
    sent = {**expected, "Since": 5, "Days": [5], "Times": "x"}
    assert decode(json_request("ListQueues", sent)).parameters == expected
    fields = "Action=ListQueues&Sorted=true&NewMap.1.Name=a&NewMap.1.Value=b&Since=5&Days=5"
    assert decode(get_request(fields, "/")).parameters == expected


@pytest.mark.parametrize(
    ("value", "token"), [(1, "NUMBER_VALUE"), ("true", "STRING_VALUE"), ({}, None)]
)
def test_a_truth_value_is_true_or_false(newer_model, json_request, refusal, value, token):
    text = f"{token} can not be converted to a Boolean"
    if token is None:
        text = "Start of structure or map found where not expected."
    assert refusal(json_request("ListQueues", {"Sorted": value})).message == text


@pytest.mark.parametrize("text", ["True", "1", ""])
def test_a_truth_value_in_query_is_one_of_two_texts(newer_model, get_request, refusal, text):
    error = refusal(get_request(f"Action=ListQueues&Sorted={text}", "/"))
    assert error.message == "STRING_VALUE can not be converted to a Boolean"
    request = get_request("Action=ListQueues&Sorted=false", "/")
    assert decode(request).parameters == {"Sorted": False}


def test_models_in_the_users_home_do_not_change_the_server(tmp_path):
    folder = tmp_path / ".aws/models/sqs/2099-01-01"
    folder.mkdir(parents=True)
    (folder / "service-2.json").write_text(json.dumps({"operations": {}, "shapes": {}}))
    program = "from pytest_sqsq.protocol import model; print(len(model.operations()))"
    environment = {**os.environ, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert int(run.stdout) == len(model.operations())
