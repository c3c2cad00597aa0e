"""The evaluation of abstention: pairs have the right documents, and tuning sees training documents only."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from scripts.common.corpus import Corpus, read
from scripts.evaluation.__main__ import app
from scripts.evaluation.abstain import (
    BASES,
    GOALS,
    KS,
    LOSSES,
    ErrorCounts,
    count_decisions,
    learner,
    measure,
    nearest_dropped,
    panel,
    total,
)
from scripts.evaluation.committees import METHODS
from scripts.evaluation.pairs import MIN_GROUP, GroupedCorpus, Pair, stripped

NAMES = ("apples", "boats", "chess")
NEEDS_NO_EXTRA = [name for name in BASES if name != "SVM"]


def write(path: Path) -> Path:
    """Writes three groups of short texts. Four words of a text are typical of its group, but a few texts have none."""
    rng = np.random.default_rng(2)
    with path.open("w") as lines:
        for i in range(MIN_GROUP * len(NAMES)):
            group = NAMES[i % len(NAMES)]
            typical = 0 if rng.random() < 0.03 else 4
            words = [f"word{n}" for n in rng.integers(0, 400, 10)] + [
                f"{group}{n}" for n in rng.integers(0, 30, typical)
            ]
            row = {"id": str(i), "split": "train", "date": f"{i:05}", "title": "", "topics": [group]}
            lines.write(json.dumps({**row, "text": " ".join(words)}) + "\n")
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return read(write(tmp_path_factory.mktemp("abstain") / "groups.jsonl"))


@pytest.fixture(scope="module")
def pair(corpus: Corpus) -> Pair:
    return GroupedCorpus(corpus).pair(("apples", "boats"), 120, seed=3)


def test_a_pair_has_half_of_its_training_documents_from_either_group(corpus: Corpus, pair: Pair) -> None:
    assert (len(pair.y), int(pair.y.sum())) == (120, 60)
    assert (len(pair.y_test), int(pair.y_test.sum())) == (2 * MIN_GROUP - 120, MIN_GROUP - 60)
    assert pair.X.shape[1] == pair.X_test.shape[1]
    for i, document in enumerate(pair.documents):
        assert (pair.X[[i]].toarray()[0, document.slots] == document.values).all()
    assert np.square(pair.X.toarray()).sum(axis=1) == pytest.approx(np.ones(120))


def test_a_holdout_is_of_training_documents_alone(corpus: Corpus, pair: Pair) -> None:
    held = GroupedCorpus(corpus).pair(("apples", "boats"), 120, seed=3, holdout=True)
    assert (len(held.y), len(held.y_test)) == (90, 30)


def test_pairs_are_different_and_drawn_by_the_seed(corpus: Corpus) -> None:
    groups = GroupedCorpus(corpus)
    assert sorted(groups.pairs(10, 1)) == [("apples", "boats"), ("apples", "chess"), ("boats", "chess")]
    assert groups.pairs(2, 1) == groups.pairs(2, 1)


def test_quotes_and_signatures_are_taken_out() -> None:
    message = "In article <1@x>, jo@x (Jo) writes:\n> I sail.\nJo> And swim.\nSo do I.\n-- \nAnn, harbour master"
    assert stripped(message).split() == ["So", "do", "I."]


def test_documents_nearest_to_the_cut_are_dropped_first() -> None:
    distances = np.array([0.5, -0.1, 0.2, -3.0])
    assert nearest_dropped(distances, 0.0).tolist() == [1, -1, 1, -1]
    assert nearest_dropped(distances, 0.5).tolist() == [1, 0, 0, -1]
    counts = count_decisions(nearest_dropped(distances, 0.25), np.array([True, True, False, False]))
    assert counts == ErrorCounts(1, 3, 4)
    assert (counts.error, counts.loss) == (1 / 3, 0.25)
    assert total([counts, counts]) == ErrorCounts(2, 6, 8)


@pytest.mark.parametrize("name", NEEDS_NO_EXTRA)
def test_the_error_falls_where_documents_are_left_out(pair: Pair, name: str) -> None:
    result = measure(pair, BASES[name], seed=1)
    errors = [result.curve[loss].error for loss in LOSSES]
    assert 0.005 < errors[0] < 0.06
    assert errors[LOSSES.index(0.5)] < 0.002
    for loss in LOSSES:
        assert result.curve[loss].loss == pytest.approx(loss, abs=1e-3)
    assert set(result.committees) == {
        (m, k, by) for m in METHODS for k in KS for by in ("unanimous", "vote", "weighted", "mean")
    }
    losses = [result.committees["split", k, "unanimous"].loss for k in KS]
    assert losses == sorted(losses)
    for goal in GOALS:
        assert result.tuned[goal].distance.loss == pytest.approx(goal, abs=0.12)


def test_what_is_tuned_knows_nothing_of_the_truth_about_test_documents(pair: Pair) -> None:
    other = replace(pair, y_test=~pair.y_test)
    first, second = (measure(p, BASES["Centroid"], seed=1) for p in (pair, other))
    for goal in GOALS:
        assert first.tuned[goal].distance.decided == second.tuned[goal].distance.decided
        assert {by: t.decided for by, t in first.tuned[goal].split.items()} == {
            by: t.decided for by, t in second.tuned[goal].split.items()
        }
    assert {k: e.by for k, e in first.estimated.items()} == {k: e.by for k, e in second.estimated.items()}


@pytest.mark.parametrize("kind", ["wh", "pa", "perceptron"])
def test_every_additive_learner_can_be_made_restrictive(pair: Pair, kind: str) -> None:
    distances = panel(pair, learner(kind, {}, 2), (np.arange(len(pair.y)),), seed=1).test[:, 0]
    assert count_decisions(nearest_dropped(distances, 0.3), pair.y_test).error < 0.01


def test_the_command_prints_tables_and_writes_json(tmp_path: Path) -> None:
    path, out = write(tmp_path / "groups.jsonl"), tmp_path / "out.json"
    options = ["--pairs", "2", "--train", "80", "--only", "Centroid", "--text", "full", "--out", str(out)]
    answer = CliRunner().invoke(app, ["abstain", str(path), *options])
    assert answer.exit_code == 0, answer.output
    for title in ("left out", "Unanimous committees", "k-split by rule", "Tuned on training", "Estimates"):
        assert title in answer.output
    [row] = json.loads(out.read_text())["results"]
    assert row["curve"]["0.5"][0] <= row["curve"]["0.0"][0] < 0.1


def test_a_corpus_without_large_groups_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.jsonl"
    path.write_text(json.dumps({"split": "train", "text": "few words", "topics": ["one"]}))
    answer = CliRunner().invoke(app, ["abstain", str(path)])
    assert answer.exit_code == 2
