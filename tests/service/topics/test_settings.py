"""A topic's settings: what a change of each leads to, and that requests follow from one declaration."""

from service.schemas import EFFECTS, Effect, Goal, Learner, Pocket, TopicChange, TopicFields
from service.schemas.metrics import PreviewRequest
from service.topics.settings import TopicSettings, effect_of


def test_a_change_reaches_as_far_as_the_setting_that_reaches_furthest() -> None:
    plain = TopicFields(query="oil")
    assert effect_of(plain, plain) is Effect.NOTHING
    assert effect_of(TopicFields(query="oil", name="Oil"), plain) is Effect.NOTHING
    assert effect_of(TopicFields(query="oil", goal=Goal(max_abstain=0.1)), plain) is Effect.MODEL
    changed = TopicFields(query="oil", goal=Goal(max_abstain=0.1), learner=Learner(kind="eg"))
    assert effect_of(changed, plain) is Effect.START


def test_whatever_can_be_set_can_be_changed_and_what_decides_can_be_tried() -> None:
    assert EFFECTS.keys() == TopicFields.model_fields.keys() == TopicChange.model_fields.keys()
    assert {name for name, effect in EFFECTS.items() if effect} <= PreviewRequest.model_fields.keys()


class LaterSettings(TopicSettings):
    """Settings with one that a later version might add."""

    note: str = ""


def test_a_new_setting_does_not_change_what_is_stored_of_topics_that_do_without_it() -> None:
    """Digests are made of it: models that nobody changed would not verify any more."""
    stored = TopicSettings(created_ms=7, query="oil").model_dump_json()
    assert stored == (
        '{"name":"","query":"oil","learner":{"kind":"wh","params":{}},"goal":{},'
        '"rules":{"accept_if":null,"reject_if":null},"audit":null,"retrain":null,"created_ms":7}'
    )
    assert LaterSettings(created_ms=7, query="oil").model_dump_json() == stored
    assert '"note":"urgent"' in LaterSettings(created_ms=7, note="urgent").model_dump_json()


def test_a_goal_that_was_stored_before_there_were_modes_is_strict_and_stored_as_it_was() -> None:
    stored = TopicSettings(created_ms=7, goal=Goal(min_precision=0.9, mode="strict")).model_dump_json()
    assert '"goal":{"min_precision":0.9}' in stored
    read = TopicSettings.model_validate_json(stored)
    assert read.goal.mode == "strict"
    assert read.model_dump_json() == stored
    new = TopicSettings(created_ms=7, goal=Goal(min_precision=0.9)).model_dump_json()
    assert '"goal":{"min_precision":0.9,"mode":"best"}' in new
    assert TopicSettings.model_validate_json(new).goal == Goal(min_precision=0.9)
    assert '"goal":{}' in TopicSettings(created_ms=7, goal=Goal(mode="strict")).model_dump_json()


def test_a_topic_that_was_stored_before_there_were_pockets_to_choose_keeps_the_one_it_had() -> None:
    stored = TopicSettings(created_ms=7).model_dump_json()
    assert "pocket" not in stored
    assert TopicSettings.model_validate_json(stored).pocket == Pocket(every=10, by="learned")
    new = TopicSettings(created_ms=7, pocket=Pocket()).model_dump_json()
    assert '"pocket":{"every":10,"by":"both"}' in new
    assert TopicSettings.model_validate_json(new).pocket == Pocket()
