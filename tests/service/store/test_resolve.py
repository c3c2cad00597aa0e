"""A log gives the same result however it is read."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from service.store.events import Event
from service.store.resolve import Resolved, obsolete, resolve, without

DOCUMENTS = st.sampled_from(["a", "b", "c", "d"])


def settings(seq: int) -> str:
    return f"s{seq}"


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """A log as the service could have written it: a topic, then anything."""
    events = [Event("created", 1, 0, 1, settings=settings(1), features=b"q1")]
    for seq in range(2, draw(st.integers(2, 25))):
        kind = draw(st.sampled_from(["judged"] * 6 + ["withdrawn", "edited", "restored", "published", "compacted"]))
        if kind == "judged":
            known = draw(st.none() | st.floats(0, 1))
            event = Event("judged", seq, seq // 5, seq, draw(DOCUMENTS), draw(st.booleans()), features=b"x%d" % seq)
            grade = draw(st.none() | st.integers(1, 3)) if event.relevant else None
            standing = resolve(events).judged.get(event.document)
            regrades = standing is not None and standing.relevant == event.relevant and draw(st.booleans())
            event = replace(event, probability=known, grade=grade, regrades=regrades)
        elif kind == "withdrawn":
            event = Event("withdrawn", seq, seq // 5, seq, draw(DOCUMENTS))
        elif kind == "edited":
            refold = draw(st.booleans())
            event = Event("edited", seq, seq // 5, seq, settings=settings(seq), features=b"q%d" % seq, refold=refold)
        elif kind == "restored":
            then = resolve(events, draw(st.integers(1, seq - 1)))
            restored = then.version
            event = Event(
                "restored", seq, then.epoch, seq, restores=restored, settings=settings(seq), features=b"q%d" % seq
            )
        elif kind == "published":
            event = Event("published", seq, seq // 5, seq, model=b"m%d" % seq, cause="import")
        else:
            event = Event("compacted", seq, seq // 5, seq, kept=draw(st.integers(1, 4)))
        events.append(event)
    return events


def fold_inputs(resolved: Resolved) -> tuple[object, ...]:
    """All that a fold depends on, in order."""
    base = resolved.base.model if resolved.base else None
    folded = [(s.first.document, s.relevant, s.first.features) for s in resolved.to_fold()]
    labels = {document: standing.label for document, standing in resolved.judged.items()}
    return resolved.version, resolved.epoch, resolved.settings.settings, base, folded, resolved.counts(), labels


def plainly(events: list[Event], upto: int) -> Resolved:
    """What stands, by the definition: event after event, and a restored version read again from the beginning."""
    resolved = Resolved(events[0].seq, events[0].epoch, events[0])
    for event in events:
        if event.seq > upto:
            break
        if event.kind == "restored":
            resolved = plainly(events, event.restores)
            resolved.version, resolved.epoch, resolved.settings = event.seq, event.epoch, event
        else:
            resolved.take(event)
    return resolved


@given(logs(), st.data())
def test_every_version_stands_as_its_definition_says(events: list[Event], data: st.DataObject) -> None:
    version = data.draw(st.integers(1, events[-1].seq))
    assert fold_inputs(resolve(events, version)) == fold_inputs(plainly(events, version))


def test_versions_that_restore_one_another_are_read_once_each() -> None:
    """By the definition, each would take twice as long as the one before: twenty took seconds, and forty for ever."""
    events = [
        *_judged(("a", True)),
        *(Event("restored", 0, 0, n, restores=n - 1, settings="s") for n in range(3, 3000)),
    ]
    assert [s.first.document for s in resolve(events).to_fold()] == ["a"]


@given(logs())
def test_an_event_survives_the_store(events: list[Event]) -> None:
    for event in events:
        stored = {name.encode(): value for name, value in event.to_fields().items()}
        assert Event.from_fields(event.seq, stored) == event


@given(logs())
def test_following_one_event_at_a_time_equals_reading_the_whole_log(events: list[Event]) -> None:
    followed = resolve(events[:1])
    for n, event in enumerate(events[1:], 2):
        if event.kind == "restored":
            followed = resolve(events[:n])
        else:
            followed.take(event)
        assert fold_inputs(followed) == fold_inputs(resolve(events[:n]))


@given(logs(), st.data())
def test_a_restored_topic_stands_as_it_stood(events: list[Event], data: st.DataObject) -> None:
    version = data.draw(st.integers(1, events[-1].seq))
    then = resolve(events, version)
    restored = Event("restored", 99, then.epoch, events[-1].seq + 1, restores=version, settings="s", features=b"q")
    now = resolve([*events, restored])
    assert fold_inputs(now)[3:] == fold_inputs(then)[3:]
    assert (now.version, now.epoch) == (restored.seq, then.epoch)


@given(logs(), st.integers(1, 3), st.data())
def test_another_grade_changes_the_label_and_nothing_that_is_learned(
    events: list[Event], grade: int, data: st.DataObject
) -> None:
    before = resolve(events)
    relevant = [document for document, standing in before.judged.items() if standing.relevant]
    if not relevant:
        return
    document, seq = data.draw(st.sampled_from(relevant)), events[-1].seq + 1
    event = Event("judged", 99, before.epoch, seq, document, True, grade=grade, regrades=True)
    after = resolve([*events, event])
    assert fold_inputs(after)[1:-1] == fold_inputs(before)[1:-1]
    assert (after.judged[document].grade, after.judged[document].label) == (grade, f"1:{grade}")
    assert before.take(event) == "another grade"
    assert seq not in obsolete([*events, event], seq)


@given(logs(), st.data())
def test_what_compaction_removes_is_not_missed(events: list[Event], data: st.DataObject) -> None:
    """Every version from the floor on is what it was."""
    floor = data.draw(st.integers(1, events[-1].seq))
    gone = obsolete(events, floor)
    left = without(events, gone)
    assert all(seq < floor for seq in gone)
    for version in range(floor, events[-1].seq + 1):
        assert fold_inputs(resolve(left, version)) == fold_inputs(resolve(events, version))


@given(logs(), st.integers(1, 3), st.integers(1, 6))
def test_compacting_again_and_again_is_not_noticed(events: list[Event], every: int, versions: int) -> None:
    kept: list[Event] = []
    for n, event in enumerate(events, 1):
        if event.kind == "restored" and event.restores < event.seq - versions:
            break  # nobody could have asked for it
        kept.append(event)
        assert fold_inputs(resolve(kept)) == fold_inputs(resolve(events[:n]))
        if n % every == 0 and event.seq > versions:
            kept = without(kept, obsolete(kept, event.seq - versions))


def test_the_newest_judgements_are_kept() -> None:
    events = [*_judged(("a", True), ("b", True), ("c", False)), Event("compacted", 0, 0, 5, kept=2)]
    assert list(resolve(events).judged) == ["b", "c"]
    assert list(resolve(events, 4).judged) == ["a", "b", "c"]


def test_a_corrected_label_stands_where_the_wrong_one_stood() -> None:
    events = _judged(("a", True), ("b", True), ("a", False))
    assert [(s.first.document, s.relevant) for s in resolve(events).to_fold()] == [("a", False), ("b", True)]


def test_a_judgement_made_again_after_its_withdrawal_is_the_newest() -> None:
    events = _judged(("a", True), ("b", True))
    events += [Event("withdrawn", 0, 0, 4, "a"), Event("judged", 0, 0, 5, "a", True)]
    assert [s.first.document for s in resolve(events).to_fold()] == ["b", "a"]


def test_a_base_is_learned_from_no_more_but_a_correction_of_what_it_rests_on_is() -> None:
    events = _judged(("a", True), ("b", True))
    events += [Event("published", 0, 0, 4, model=b"m", cause="import"), Event("judged", 0, 0, 5, "a", False)]
    resolved = resolve(events)
    assert [(s.first.seq, s.relevant) for s in resolved.to_fold()] == [(2, False)]
    assert list(resolved.judged) == ["a", "b"]


def test_what_came_while_a_base_was_made_is_folded_after_it() -> None:
    events = _judged(("a", True), ("b", True), ("a", False))
    events += [Event("published", 0, 0, 5, model=b"m", cause="retrain", made_from=3)]
    resolved = resolve(events)
    assert [(s.first.document, s.relevant) for s in resolved.base_judgements()] == [("b", True)]
    assert [(s.first.document, s.relevant) for s in resolved.to_fold()] == [("a", False)]


def _judged(*labels: tuple[str, bool]) -> list[Event]:
    first = Event("created", 0, 0, 1, settings="s")
    return [first, *(Event("judged", 0, 0, seq, d, y) for seq, (d, y) in enumerate(labels, 2))]
