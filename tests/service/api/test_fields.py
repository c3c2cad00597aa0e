"""Every field of every request: what it may not hold, and that the error points to it and repeats nothing."""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from models.online.registry import LEARNERS
from service.schemas.fields import MAX_NUMBER, MAX_THRESHOLD
from tests.support.api import OIL, QUERY, Api
from tests.support.refusals import MARK, pointers, refused, send

pytestmark = pytest.mark.asyncio(loop_scope="module")

CUT = MARK[:60]
MODEL = {
    "format": "sluice-model/1",
    "kind": "wh",
    "view": "tfidf",
    "bias": 0.1,
    "rest": 0.0,
    "reject_below": 0.2,
    "accept_above": 0.3,
    "terms": {"oil": 1.0},
}


def topic(**fields: Any) -> Any:
    return "POST", "/topics", {"id": "x"} | fields


def changed(**fields: Any) -> Any:
    return "PATCH", "/topics/crude", fields


def classified(**fields: Any) -> Any:
    return "POST", "/classify", {"documents": [OIL]} | fields


def document(**fields: Any) -> Any:
    return classified(documents=[OIL | fields])


def judged(**fields: Any) -> Any:
    return "POST", "/feedback", {"topic": "crude", "document": "d", "relevant": True} | fields


def model(**fields: Any) -> Any:
    return "PUT", "/topics/crude/model", MODEL | fields


@pytest.mark.parametrize(
    ("request_with", "pointer"),
    [
        (lambda s: topic(id=s), "/id"),
        (lambda s: topic(name=s), "/name"),
        (lambda s: topic(query=s), "/query"),
        (lambda s: topic(learner={"kind": s}), "/learner/kind"),
        (lambda s: topic(learner={"kind": "wh", "params": {s: 1}}), "/learner"),
        (lambda s: topic(learner={"kind": "wh", "params": {"eta": s}}), "/learner"),
        (lambda s: topic(goal={"min_recall": s}), "/goal/min_recall"),
        (lambda s: topic(goal={s: 0.5}), f"/goal/{CUT}"),
        (lambda s: topic(rules={"accept_if": s}), "/rules/accept_if"),
        (lambda s: topic(rules={"reject_if": f"{s[:9000]}:x"}), "/rules/reject_if"),
        (lambda s: topic(rules={"reject_if": f'"{s[:9000]}'}), "/rules/reject_if"),
        (lambda s: topic(rules={"reject_if": f"\0{s[:9000]}"}), "/rules/reject_if"),
        (lambda s: changed(name=s), "/name"),
        (lambda s: changed(query=s), "/query"),
        (lambda s: changed(learner=s), "/learner"),
        (lambda s: document(id=s), "/documents/0/id"),
        (lambda s: document(source=s), "/documents/0/source"),
        (lambda s: document(published=s), "/documents/0/published"),
        (lambda s: document(url=s), "/documents/0/url"),
        (lambda s: document(url=f"https://example.org/{s}"), "/documents/0/url"),
        (lambda s: document(author=s), "/documents/0/author"),
        (lambda s: document(language=s), "/documents/0/language"),
        (lambda s: document(metadata={"a": s}), "/documents/0/metadata"),
        (lambda s: document(metadata={s: 1}), "/documents/0/metadata"),
        (lambda s: document(metadata=s), "/documents/0/metadata"),
        (lambda s: classified(documents=s), "/documents"),
        (lambda s: classified(documents=[OIL, s]), "/documents/1"),
        (lambda s: classified(topics=["crude", s]), "/topics/1"),
        (lambda s: classified(explain=s), "/explain"),
        (lambda s: classified(include=s), "/include"),
        (lambda s: classified(**{s: s}), f"/{CUT}"),
        (lambda s: judged(topic=s), "/topic"),
        (lambda s: judged(document=s), "/document"),
        (lambda s: judged(document=OIL | {"id": s}), "/document/id"),
        (lambda s: judged(relevant=s), "/relevant"),
        (lambda s: judged(by=s), "/by"),
        (lambda s: ("POST", "/feedback", {"judgements": s}), "/judgements"),
        (
            lambda s: ("POST", "/feedback", {"judgements": [{"topic": s, "document": "d", "relevant": True}]}),
            "/judgements/0/topic",
        ),
        (lambda s: model(kind=s), "/kind"),
        (lambda s: model(view=s), "/view"),
        (lambda s: model(bias=s), "/bias"),
        (lambda s: model(terms={s: 1.0}), f"/terms/{CUT}"),
        (lambda s: model(features={s: 1.0}), f"/features/{CUT}"),
    ],
)
async def test_a_megabyte_is_not_echoed_and_the_error_points_to_its_field(
    shared: Api, request_with: Callable[[str], Any], pointer: str
) -> None:
    assert pointers(refused(await send(shared, *request_with(MARK)), 422)) == [pointer]


@pytest.mark.parametrize("value", ['"\\u0000"', '"a\\r\\nb: c"', '"\\u0007"', '""', '"."', '"../x"', '"a/.."'])
async def test_ids_of_documents_cannot_break_logs_headers_or_paths(shared: Api, value: str) -> None:
    """`DELETE /topics/crude/judgements/..` is, for every client, `DELETE /topics/crude`: the topic was gone."""
    document = f'{{"text": "oil", "id": {value}}}'
    for path, body, pointer in (
        ("/classify", f'{{"documents": [{document}]}}', "/documents/0/id"),
        ("/feedback", f'{{"topic": "crude", "relevant": true, "document": {document}}}', "/document/id"),
        ("/feedback", f'{{"topic": "crude", "relevant": true, "document": {value}}}', "/document"),
    ):
        assert pointers(refused(await send(shared, "POST", path, body), 422)) == [pointer]


@pytest.mark.parametrize("name", ["d1", "a/b", "a b", "http://x.org/?q=1#x", "日本", "%2F", "é", "x" * 256, "..."])
async def test_every_other_id_can_be_judged_and_withdrawn(shared: Api, name: str) -> None:
    await shared.ok("POST", "/classify", {"documents": [OIL | {"id": name}]})
    assert (await shared.judge(name, True))["document"] == name
    path = "/topics/crude/judgements/" + "".join(f"%{byte:02X}" for byte in name.encode())
    assert (await shared.ok("DELETE", path))["document"] == name


@pytest.mark.parametrize("name", ["", "A", "-a", ".a", "a b", "a/b", "é", "a\n", "x" * 129, "..", "\0", "a\r\nb"])
async def test_ids_of_topics_have_a_syntax(shared: Api, name: str) -> None:
    assert pointers(refused(await send(shared, *topic(id=name)), 422)) == ["/id"]


@pytest.mark.parametrize("body", ['{"text": ""}', '{"text": " \\t\\n", "title": ""}', "{}", "[]", "null", '"d"', "1"])
async def test_documents_that_say_nothing_are_refused(shared: Api, body: str) -> None:
    problem = refused(await send(shared, "POST", "/classify", f'{{"documents": [{body}]}}'), 422)
    assert pointers(problem)[0].startswith("/documents/0")


@pytest.mark.parametrize(
    "text",
    ["!!! ... --", "\u200b", "\ufffe", "🚀", "a" * 1_000_000, "x " * 500_000, "e\u0301" * 1000, "\u0301", "\u202eoil"],
    ids=lambda text: ascii(text[:8]),
)
async def test_documents_without_words_or_of_one_enormous_word_are_decided_and_learned(shared: Api, text: str) -> None:
    verdict = await shared.decide({"text": text}, explain=True)
    assert sum(part["contribution"] for part in verdict["explanation"]) == pytest.approx(verdict["score"], abs=1e-5)
    assert (await shared.judge({"text": text}, False))["status"] == "learned"


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e999", "[NaN]", '{"b": 1e999}', '"\\u0000"', '{"\\u0000": 1}']
)
async def test_metadata_holds_only_what_other_readers_of_json_can_read(shared: Api, value: str) -> None:
    body = f'{{"documents": [{{"text": "oil", "metadata": {{"a": {value}}}}}]}}'
    assert pointers(refused(await send(shared, "POST", "/classify", body), 422)) == ["/documents/0/metadata"]


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "http://example.org:8080/a/b?q=oil&p=%20#top",
        "HTTPS://EXAMPLE.ORG/",
        "https://müller.example/öl",
        "http://[::1]/",
        "http://10.0.0.1/",
    ],
)
async def test_a_url_is_one_that_a_reader_may_be_led_to(shared: Api, url: str) -> None:
    await shared.ok(*document(url=url))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "opec",
        "//example.org/",
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)//https://example.org",
        "data:text/html,x",
        "ftp://example.org/",
        "https://",
        "https:///path",
        "https://example.org:99999/",
        "https://example.org:0/",
        "https://user:password@example.org/",
        "https://example.org@evil.example/",
        "https://evil.example\\@example.org/",
        "https://example.org/a b",
        "https://example.org/\n",
        'https://example.org/"onclick="x',
        "https://example.org/<script>",
        "https://[::1/",
        " https://example.org/",
    ],
)
async def test_any_other_url_is_refused(shared: Api, url: str) -> None:
    assert pointers(refused(await send(shared, *document(url=url)), 422)) == ["/documents/0/url"]


@pytest.mark.parametrize("language", ["en", "pt-BR", "zh-Hant-TW", "de-1996"])
async def test_a_language_is_a_tag(shared: Api, language: str) -> None:
    await shared.ok(*document(language=language))


@pytest.mark.parametrize("language", ["", "e", "english language", "en_GB", "en-", "en\n", "ж", "aaaaaaaaa"])
async def test_any_other_language_is_refused(shared: Api, language: str) -> None:
    assert pointers(refused(await send(shared, *document(language=language)), 422)) == ["/documents/0/language"]


async def test_a_title_without_text_is_a_document(shared: Api) -> None:
    verdict = await shared.decide({"title": "OPEC cuts crude oil output"})
    assert verdict["decision"] == "accept"
    assert (await shared.judge({"title": "Farmers in Kansas"}, False))["status"] == "learned"


async def test_metadata_has_a_size(shared: Api) -> None:
    rich = {"tags": ["a"] * 900, "note": "x" * 90_000, "deep": {"er": [{"est": None}]}, "n": 2**70, "f": 1.5, "": True}
    for enough in (rich, {f"k{i}": 1 for i in range(1000)}, {"a": ["x"] * 999}):
        await shared.ok(*document(metadata=enough))
    for much in ({"a": ["x"] * 1000}, {f"k{i}": 1 for i in range(1001)}, {"a": "x" * 100_001}, {"x" * 100_001: 1}):
        refused(await send(shared, *document(metadata=much)), 422)


async def test_unknown_fields_are_refused_and_of_a_field_given_twice_the_last_counts(shared: Api) -> None:
    assert pointers(refused(await send(shared, *classified(explian=True)), 422)) == ["/explian"]
    assert pointers(refused(await send(shared, *document(body="x")), 422)) == ["/documents/0/body"]
    assert pointers(refused(await send(shared, *classified(**{"a/b~c": 1})), 422)) == ["/a~1b~0c"]
    assert pointers(refused(await send(shared, *topic(status={})), 422)) == ["/status"]
    assert pointers(refused(await send(shared, *changed(id="x")), 422)) == ["/id"]
    doubled = '{"documents": [{"text": "wheat"}], "documents": [{"text": "oil", "id": "1", "id": "2"}]}'
    assert (await send(shared, "POST", "/classify", doubled)).json()["results"][0]["document"] == "2"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ([], [""]),
        ({}, ["/topic", "/document", "/relevant"]),
        ({"topic": "crude", "document": 5, "relevant": True}, ["/document"]),
        ({"topic": "crude", "document": {}, "relevant": True}, ["/document"]),
        (
            {"topic": "crude", "document": {"text": 1, "x": 2}, "relevant": 4},
            ["/document/text", "/document/x", "/relevant"],
        ),
        ({"judgements": []}, ["/judgements"]),
        ({"judgements": [], "topic": "crude"}, ["/judgements", "/topic"]),
        (
            {"judgements": [{"topic": "t", "document": {"txt": ""}, "relevant": True}, 7]},
            ["/judgements/0/document/txt", "/judgements/1"],
        ),
    ],
    ids=lambda part: str(part)[:50],
)
async def test_errors_in_feedback_point_into_the_request_and_name_nothing_of_ours(
    shared: Api, body: Any, expected: list[str]
) -> None:
    assert pointers(refused(await send(shared, "POST", "/feedback", body), 422)) == expected


async def test_null_puts_a_setting_back(shared: Api) -> None:
    await shared.topic("changing")
    given = {"name": "Oil", "goal": {"min_recall": 0.9}, "learner": {"kind": "eg"}}
    assert (await shared.ok("PATCH", "/topics/changing", given))["goal"] == {"min_recall": 0.9, "mode": "best"}
    again = await shared.ok("PATCH", "/topics/changing", {"goal": None, "learner": None})
    assert (again["goal"], again["learner"], again["name"]) == ({}, {"kind": "wh", "params": {}}, "Oil")


# -- learners and models -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LEARNERS)
async def test_every_parameter_of_every_learner_is_checked(shared: Api, kind: str) -> None:
    never = (
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        "1e300",
        "-1e300",
        "1" * 400,
        "[1]",
        "{}",
        '"Z"',
    )
    for name in [field.name for field in fields(LEARNERS[kind].Params)]:
        for value in never:
            learner = f'"learner": {{"kind": "{kind}", "params": {{"{name}": {value}}}}}'
            problem = refused(await send(shared, "POST", "/topics", f'{{"id": "x", {learner}}}'), 422)
            assert pointers(problem)[0].startswith("/learner")
            refused(await send(shared, "PATCH", "/topics/crude", f"{{{learner}}}"), 422)
    refused(await send(shared, *topic(learner={"kind": kind, "params": {"no_such": 1}})), 422)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ('{"eta": NaN}', "/learner/params/eta"),
        ('{"eta": [1]}', "/learner/params/eta"),
        ('{"params": {"eta": NaN}}', "/learner/params/params/eta"),
        ('{"params": {"eta": {}}}', "/learner/params/params/eta"),
    ],
)
async def test_a_parameter_that_is_wrong_is_pointed_at_once_and_by_its_name(
    shared: Api, params: str, expected: str
) -> None:
    body = f'{{"id": "x", "learner": {{"kind": "committee", "params": {params}}}}}'
    assert pointers(refused(await send(shared, "POST", "/topics", body), 422)) == [expected]


async def test_a_parameter_may_be_null_where_its_learner_says_so(shared: Api) -> None:
    made = await shared.topic("paper", learner={"kind": "wh", "params": {"eta": None}})
    assert made["learner"]["params"] == {"eta": None}
    assert (await shared.judge(OIL, True, "paper"))["status"] == "learned"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ('"bias": NaN', "/bias"),
        ('"bias": 1e999', "/bias"),
        ('"rest": -Infinity', "/rest"),
        ('"rest": 1e300', "/rest"),
        ('"accept_above": Infinity', "/accept_above"),
        ('"reject_below": 0.9', ""),
        ('"terms": {"oil": NaN}', "/terms/oil"),
        ('"terms": {"oil": 1e39}', "/terms/oil"),
        ('"terms": {"oil": "1"}', "/terms/oil"),
        ('"terms": {"oil": true}', "/terms/oil"),
        ('"terms": {"oil": null}', "/terms/oil"),
        ('"terms": {"": 1}', "/terms/"),
        ('"terms": {"a\\nb": 1}', "/terms/a\nb"),
        ('"terms": []', "/terms"),
        ('"features": {"00": 1}', "/features/00"),
        ('"features": {"zzzzzzzzzzzzzzzz": 1}', "/features/zzzzzzzzzzzzzzzz"),
        ('"features": {"0123456789ABCDEF": 1}', "/features/0123456789ABCDEF"),
        ('"view": "cosine"', "/view"),
        ('"format": "sluice-model/99"', "/format"),
        (f'"terms": {json.dumps({f"t{i}": 1.0 for i in range(10_001)})}', "/terms"),
    ],
    ids=lambda part: str(part)[:40],
)
async def test_a_model_that_could_not_decide_is_refused(shared: Api, change: str, pointer: str) -> None:
    body = json.dumps(MODEL)[:-1] + f", {change}}}"
    assert pointers(refused(await send(shared, "PUT", "/topics/crude/model", body), 422)) == [pointer]


@pytest.mark.parametrize("view", ["presence", "tf", "sqrt", "strength", "tfidf"])
@pytest.mark.parametrize("kind", LEARNERS)
async def test_the_largest_model_that_is_taken_decides_explains_and_learns(shared: Api, kind: str, view: str) -> None:
    await shared.topic("large", learner={"kind": kind, "params": {"view": view}})
    words = dict.fromkeys(QUERY.lower().split(), MAX_NUMBER) | {"wheat": -MAX_NUMBER}
    heavy = {"text": "oil crude " * 5000}
    for rest in (0.0, MAX_NUMBER, -MAX_NUMBER):
        numbers = {"bias": MAX_NUMBER, "rest": rest, "reject_below": -MAX_THRESHOLD, "accept_above": MAX_THRESHOLD}
        await shared.ok("PUT", "/topics/large/model", MODEL | numbers | {"view": view, "terms": words})
        for document in (OIL, heavy, {"text": "wheat"}):
            asked = {"documents": [document], "topics": ["large"], "explain": True}
            json.loads((await shared.post("/classify", json=asked)).content, parse_constant=pytest.fail)
        await shared.judge(OIL, True, "large")
        await shared.judge(heavy, False, "large")
        for path in ("/topics/large", "/topics/large/model", "/topics/large/model?format=export"):
            json.loads((await shared.get(path)).content, parse_constant=pytest.fail)
        assert (await shared.decide(OIL, "large"))["decision"] in ("accept", "reject", "abstain")
    await shared.request("DELETE", "/topics/large")
