"""What is wrong with a request, in sentences that people would say."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from service import schemas
from service.config import Config
from service.errors import BadInput, BadRequest, ServiceError
from service.schemas import jobs
from service.schemas.flow import Routes
from service.schemas.metrics import PreviewRequest
from service.schemas.models import ModelFile
from service.schemas.parsing import parse
from service.schemas.topics import Learner, Policy
from service.sentences import as_sentence, number_of
from service.topics import settings

WEBHOOK = {"to": "webhook", "url": "https://example.org"}
JUDGEMENT = {"topic": "crude", "document": "d1", "relevant": True}
OBJECT = "This must be an object."
BAD_URL = "This URL does not have a valid host name and port."


def refusal(schema: Any, raw: bytes) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        parse(TypeAdapter(schema), raw, Config())
    return refused.value


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        (schemas.NewTopic, [], {"": OBJECT}),
        (schemas.NewTopic, {}, {"": "Give the topic an id or a name."}),
        (schemas.NewTopic, {"id": 3, "nam": ""}, {"/id": "This must be a string.", "/nam": "There is no such field."}),
        (schemas.NewTopic, {"id": "a", "learner": {"params": []}}, {"/learner/kind": "This field is required."}),
        (schemas.NewTopic, {"id": "a", "goal": 3}, {"/goal": OBJECT}),
        (schemas.NewTopic, {"id": "a", "goal": {"min_recall": 2}}, {"/goal/min_recall": "This must be at most 1."}),
        (schemas.NewTopic, {"id": "a", "goal": {"min_recall": -1}}, {"/goal/min_recall": "This must be at least 0."}),
        (schemas.NewTopic, {"id": "a", "goal": {"max_error": "x"}}, {"/goal/max_error": "This must be a number."}),
        (
            schemas.NewTopic,
            {"id": "a", "goal": {"max_error": float("nan")}},
            {"/goal/max_error": "This must be a finite number."},
        ),
        (schemas.NewTopic, {"id": "a", "name": "x" * 1001}, {"/name": "This may have at most 1,000 characters."}),
        (schemas.NewTopic, {"id": "a", "name": "\0"}, {"/name": "This contains a NUL character."}),
        (schemas.NewTopic, {"id": "a", "terms": {"pin": "x"}}, {"/terms/pin": "This must be a list."}),
        (
            schemas.NewTopic,
            {"id": "a", "terms": {"pin": ["x"] * 51}},
            {"/terms/pin": "This may have at most 50 items."},
        ),
        (
            schemas.NewTopic,
            {"id": "a", "learner": {"kind": "wh", "params": {"eta": []}}},
            {"/learner/params/eta": "This must be a number, a string, true, false or null."},
        ),
        (Policy, {"method": "svm", "after": 20.5}, {"/after": "This must be a whole number."}),
        (Policy, {"method": "svm", "after": 10**7}, {"/after": "This must be at most 1,000,000."}),
        (Policy, {"method": "svm", "nightly": 1}, {"/nightly": "This must be true or false."}),
        (Policy, {"method": "svm", "publish": "no"}, {"/publish": "This must be 'if_better' or 'always'."}),
        (jobs.NewJob, {"kind": "dance"}, {"/kind": "This must be retrain, compare or backfill."}),
        (jobs.NewJob, {}, {"/kind": "This must be retrain, compare or backfill."}),
        (jobs.NewJob, [], {"": OBJECT}),
        (jobs.NewJob, {"kind": "retrain"}, {"/method": "This field is required."}),
        (jobs.NewJob, {"kind": "backfill", "topics": []}, {"/topics": "This must not be empty."}),
        (schemas.Feedback, JUDGEMENT | {"document": ""}, {"/document": "This must not be empty."}),
        (schemas.Feedback, JUDGEMENT | {"document": "a\n"}, {"/document": "This contains control characters."}),
        (
            schemas.Feedback,
            JUDGEMENT | {"document": "a/.."},
            {"/document": "This contains a path segment `.` or `..`, which clients remove."},
        ),
        (
            schemas.Classify,
            {"documents": [{"text": " "}]},
            {"/documents/0": "The document is empty: its title and its text are blank."},
        ),
        (schemas.Classify, {"documents": [], "include": "x"}, {"/include": "This must be 'all'."}),
        (PreviewRequest, {"limit": True}, {"/limit": "This must be a whole number."}),
        (Routes, {"routes": [{}]}, {"/routes/0": "`to` must be webhook or stream."}),
        (Routes, {"routes": [WEBHOOK | {"url": "http://a b"}]}, {"/routes/0/url": BAD_URL}),
        (Routes, {"routes": [WEBHOOK | {"url": "http://a:99999"}]}, {"/routes/0/url": BAD_URL}),
        (Routes, {"routes": [WEBHOOK | {"url": "http://[::1"}]}, {"/routes/0/url": BAD_URL}),
        (
            Routes,
            {"routes": [WEBHOOK | {"url": "example.org"}]},
            {"/routes/0/url": "This must be a URL that begins with https:// or http://."},
        ),
        (ModelFile, {"features": {"x": 1}}, {"/features/x": "A feature has 16 characters out of 0-9 and a-f."}),
    ],
)
def test_every_invalid_field_is_named_with_a_sentence(schema: Any, value: object, errors: dict[str, str]) -> None:
    refused = refusal(schema, json.dumps(value).encode())
    assert isinstance(refused, BadInput)
    found = {error["pointer"]: error["detail"] for error in refused.errors}
    assert found.items() >= errors.items()
    assert not [detail for detail in found.values() if "nput should" in detail or not detail.endswith(".")]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b'{"text": "a', "it ends inside a string at column 11"),
        (b'{"text":', "it ends where a value is expected at column 8"),
        (b'{"text": nope}', "expected true, false or null at column 11"),
        (b'{"text": "a",}', "there is a trailing comma at column 14"),
        (b'{"text": "a"} x', "there is more after its end at column 15"),
        (b'{"text"\n "a"}', "expected `:` at line 2 column 2"),
        (b'{"text": "\\ud800"}', "a \\u escape is not complete at column 17"),
    ],
)
def test_where_json_breaks_is_said_without_jargon(raw: bytes, problem: str) -> None:
    refused = refusal(schemas.Document, raw)
    assert isinstance(refused, BadRequest)
    assert refused.detail == f"This is not valid JSON: {problem}."


@pytest.mark.parametrize(
    ("learner", "detail"),
    [
        (Learner(kind="magic"), "The learner must be one of wh, "),
        (Learner(kind="wh", params={"rate": 1}), "There is no parameter 'rate'; wh has eta, "),
        (Learner(kind="wh", params={"bias": -1}), "The parameter bias must be a number from 0 to 100."),
        (Learner(kind="auto", params={"eta": 1}), "The learner auto has no parameters: its learners use "),
    ],
)
def test_a_learner_is_refused_with_a_sentence(learner: Learner, detail: str) -> None:
    with pytest.raises(BadInput) as refused:
        settings.check_learner(learner)
    (error,) = refused.value.errors
    assert error["detail"].startswith(detail)
    assert error["detail"].endswith(".")


@pytest.mark.parametrize(
    ("method", "params", "detail"),
    [
        ("magic", {}, "The method must be one of boosting, "),
        ("svm", {"C": 0}, "The parameter C must be a number above 0 and up to 1000000."),
        ("svm", {"c": 1}, "There is no parameter 'c'; svm has C, loss, view."),
    ],
)
def test_a_method_is_refused_with_a_sentence(method: str, params: dict[str, object], detail: str) -> None:
    with pytest.raises(BadInput) as refused:
        settings.check_method(method, params, "")
    (error,) = refused.value.errors
    assert error["detail"].startswith(detail)
    assert error["detail"].endswith(".")


def test_a_rule_is_refused_with_a_sentence() -> None:
    with pytest.raises(BadInput) as refused:
        settings.check({"rules": schemas.Rules(accept_if="(oil")})
    (error,) = refused.value.errors
    assert error == {"pointer": "/rules/accept_if", "detail": "This parenthesis is never closed (at character 1)."}


def test_a_message_becomes_a_sentence_once() -> None:
    assert as_sentence(ValueError("no such thing")) == as_sentence("No such thing.") == "No such thing."
    assert as_sentence("`id` is taken") == "`id` is taken."


def test_one_is_singular() -> None:
    assert [number_of(n, "topic") for n in (0, 1, 2, 1000)] == ["0 topics", "1 topic", "2 topics", "1,000 topics"]
