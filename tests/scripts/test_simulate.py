"""The simulation: readers behave as described, no label leaks to a topic, and on a stream that is easy to filter
promises are made and kept."""

import dataclasses
import json
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from models.core.intervals import interval
from models.goals.evidence import BOUND_CONFIDENCE
from models.goals.promises import Targets
from models.text.analysis import Analysis, bags
from models.text.minhash import Groups
from scripts.common.corpus import Corpus, read
from scripts.loop.reader import ABSTAIN, ACCEPT, REJECT, Plan, SimulatedReader, drifting
from scripts.loop.stream import Stream
from scripts.loop.topic import TopicSpec
from scripts.simulation.__main__ import app
from scripts.simulation.attainment import KNOWN_ITEMS, FollowUp, GoalClaim, compare, known_items
from scripts.simulation.hindsight import decide, in_hindsight
from scripts.simulation.plant_duplicates import unrepeated, with_duplicates
from scripts.simulation.topic import measure, run
from tests.scripts.test_evaluate import TEST, TRAIN, write
from tests.support.live import live

GOAL = Targets(min_precision=0.9, min_recall=0.9, max_abstain=0.15)
SPEC = TopicSpec("wheat", "wheat", GOAL, audit=0.1)
EVERY = np.ones(TEST, np.bool_)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return read(write(tmp_path_factory.mktemp("corpus") / "generated.jsonl"))


@pytest.fixture(scope="module")
def stream(corpus: Corpus) -> Stream:
    return Stream(corpus, whole=True)


def test_a_promise_is_made_and_kept_where_it_is_easy(stream: Stream) -> None:
    relevant = stream.corpus.relevant("wheat")
    ran = run(stream, relevant, SPEC, Plan.of(SimulatedReader(), relevant))
    attained = measure(ran, stream, relevant, "wheat", EVERY)
    assert attained.met
    assert attained.going_on is not None
    for after in (attained.frozen, attained.going_on):
        assert after.precision is not None
        assert after.precision >= 0.9
        assert after.kept >= 0.9
    assert attained.recall_covers
    assert attained.known_covers >= 0.9
    assert 0 < ran.claim.audited < ran.claim.judged < ran.judged < TRAIN


def test_everything_is_judged_if_the_reader_says_so(stream: Stream) -> None:
    relevant = stream.corpus.relevant("wheat")
    ran = run(stream, relevant, SPEC, Plan.of(SimulatedReader(everything=True), relevant))
    assert ran.claim.judged == len(ran.stream)
    assert ran.judged == len(ran.stream) + len(ran.going_on) == len(ran.stream) + TEST


@pytest.mark.parametrize(
    "reader",
    [
        SimulatedReader(part=0.5),
        SimulatedReader(delay=40),
        SimulatedReader(noise=0.1),
        SimulatedReader(seeds=0),
        SimulatedReader(early=True),
        SimulatedReader(audit_every=1),
    ],
)
def test_other_readers_get_to_the_end(stream: Stream, reader: SimulatedReader) -> None:
    relevant = stream.corpus.relevant("wheat")
    plan = Plan.of(reader, relevant)
    ran = run(stream, relevant, dataclasses.replace(SPEC, audit=0.0), plan)
    given = np.isin(np.arange(stream.size), np.flatnonzero(relevant)[: reader.seeds])
    seen = (np.concatenate((ran.stream, ran.going_on)) != REJECT) & plan.judges[ran.start :] & ~given[ran.start :]
    assert ran.judged == np.count_nonzero(seen)
    assert measure(ran, stream, relevant, "wheat", EVERY).frozen.abstained <= 0.25


def test_the_same_seed_gives_the_same_course(stream: Stream) -> None:
    relevant = stream.corpus.relevant("wheat")
    plans = [Plan.of(SimulatedReader(part=0.5, noise=0.05), relevant, "wheat", 4) for _ in range(2)]
    first, second = (run(stream, relevant, SPEC, plan) for plan in plans)
    assert first.going_on.tolist() == second.going_on.tolist()
    assert first.model.accept_above == second.model.accept_above


def test_a_reader_who_turns_to_something_else_wants_it_from_then_on() -> None:
    before, after = np.array([True, False, True, False]), np.array([False, True, False, True])
    assert drifting(before, after, 2).tolist() == [True, False, False, True]


def test_known_items_cover_as_often_as_drawing_them_shows() -> None:
    kept = np.arange(60) < 50
    low, covers = known_items(kept)
    random = np.random.default_rng(0)
    draws = [int(random.permutation(kept)[:KNOWN_ITEMS].sum()) for _ in range(4000)]
    bounds = [bound for hits in draws if (bound := interval(hits, KNOWN_ITEMS, BOUND_CONFIDENCE))]
    assert low == pytest.approx(np.mean([bound.low for bound in bounds]), abs=0.01)
    assert covers == pytest.approx(np.mean([bound.low <= 50 / 60 <= bound.high for bound in bounds]), abs=0.015)


@pytest.mark.parametrize("every", [1, 4, 30, 500])
def test_known_items_cover_as_often_as_they_say(every: int) -> None:
    assert all(known_items(np.arange(every) < kept)[1] >= 2 * BOUND_CONFIDENCE - 1 for kept in range(every + 1))


def test_hindsight_cuts_at_the_goal_and_leaves_undecided_what_is_allowed() -> None:
    relevant = np.array([True] * 9 + [False] + [True, False] * 5)
    decisions = decide(np.arange(20, 0, -1.0), relevant, GOAL)
    assert (decisions == ACCEPT).tolist() == [True] * 11 + [False] * 9  # 10 of 11; 10 of 12 would be too few
    assert (decisions == ABSTAIN).tolist() == [False] * 11 + [True] * 3 + [False] * 6
    assert (decide(np.arange(4.0), np.zeros(4, np.bool_), GOAL) != ACCEPT).all()


def test_all_labels_reach_in_hindsight_what_is_easy(stream: Stream) -> None:
    relevant = {"wheat": stream.corpus.relevant("wheat")}
    (ceiling,) = in_hindsight(stream, relevant, GOAL, EVERY)
    assert ceiling.precision is not None
    assert ceiling.precision >= 0.9
    assert ceiling.kept >= ceiling.found > 0.9


def test_planted_duplicates_are_near_and_stay_on_their_side(corpus: Corpus) -> None:
    planted = with_duplicates(corpus, 0.2)
    extra = len(planted.documents) - len(corpus.documents)
    assert extra == pytest.approx(0.6 * len(corpus.documents), rel=0.2)
    assert planted.train - corpus.train == pytest.approx(0.6 * corpus.train, rel=0.25)
    assert set(map(str, planted.documents[planted.train :])) >= set(map(str, corpus.documents[corpus.train :]))
    groups = Groups()
    counts = bags(planted.documents, Analysis())
    for i in range(len(counts)):
        groups.add(counts[i][0])
    repeated = np.count_nonzero(groups.group != np.arange(len(counts)))
    assert repeated == pytest.approx(extra, rel=0.1)
    assert np.count_nonzero(unrepeated(planted)) == pytest.approx(TEST, rel=0.05)


def test_a_broken_promise_is_called_that() -> None:
    claim = GoalClaim("met", "met", None, 100, 0)
    following, relevant = np.full(200, 2, np.int8), np.arange(200) < 150
    attained = compare("t", claim, np.zeros(10, np.int8), np.zeros(10, np.bool_), relevant, following)
    assert attained.met
    assert attained.frozen.precision == 0.75
    assert not attained.frozen.holds(0.9)
    assert attained.frozen.broken(0.9)
    few = FollowUp.of(following[:8], np.arange(8) < 7)
    assert not few.holds(0.9)
    assert not few.broken(0.9)  # seven of eight may be an accident


def test_the_command_says_what_was_promised_and_what_came(tmp_path: Path) -> None:
    path = write(tmp_path / "generated.jsonl")
    out = tmp_path / "out.json"
    ran = CliRunner().invoke(app, [str(path), "--each", "--audit", ".1", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert "precision promised" in ran.output
    assert "an SVM of all labels" in ran.output
    assert "recall interval, all topics together" in ran.output
    topics = json.loads(out.read_text())["topics"]
    assert [topic["topic"] for topic in topics] != []
    assert all(topic["claim"]["judged"] > 0 for topic in topics)


def test_a_corpus_without_enough_is_refused_with_a_sentence(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, [str(write(tmp_path / "c.jsonl")), "--least", "10000"])
    assert ran.exit_code == 2
    assert "no topic has enough documents" in ran.output


def test_a_running_service_keeps_its_promises_too_and_is_left_as_it_was(tmp_path: Path, redis_url: str) -> None:
    path, out = write(tmp_path / "generated.jsonl"), tmp_path / "out.json"
    with live(redis_url) as server:
        options = ["--http", server.address, "--topics", "wheat", "--audit", ".1", "--out", str(out)]
        ran = CliRunner().invoke(app, [str(path), *options])
        assert ran.exit_code == 0, ran.output
        assert httpx.get(f"{server.address}/topics", timeout=60).json()["items"] == []
    (attained,) = json.loads(out.read_text())["topics"]
    assert attained["claim"]["precision"] == "met"
    assert attained["frozen"]["precision"] >= 0.9
    assert attained["claim"]["audited"] > 10
    assert attained["recall_covers"]
