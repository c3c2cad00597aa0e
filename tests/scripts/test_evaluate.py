"""The evaluation measures what it claims to: on a corpus that is easy to separate it finds hardly any error, and no
model learns from test documents."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

from models.core.measures import f_beta
from scripts.common.corpus import Corpus, matches, parse_groups, read
from scripts.evaluation.__main__ import app, learners
from scripts.evaluation.batch import Setting, VectorCorpus, measure
from scripts.evaluation.duels import PAIRS, duel
from scripts.evaluation.effectiveness import means
from scripts.evaluation.joint import Joint, JointRuns
from scripts.evaluation.online import POINTS, OnlineRun, OnlineSettings, run
from scripts.evaluation.peers import Peers
from scripts.loop.loop import Loop
from scripts.loop.reader import Plan, SimulatedReader
from scripts.loop.stream import Stream
from scripts.loop.topic import TopicSpec
from service.config import Config
from service.schemas import Pocket

TOPICS = ("copper", "wheat", "ships")
TRAIN, TEST = 450, 150
EVERYTHING = SimulatedReader(everything=True)


def write(path: Path, seed: int = 1) -> Path:
    """Writes documents of forty common words; one in three also has six of the eight words of its topic."""
    rng = np.random.default_rng(seed)
    common = [f"word{i}" for i in range(300)]
    with path.open("w") as lines:
        for i in range(TRAIN + TEST):
            words = rng.choice(common, 40).tolist()
            about = [topic for topic in TOPICS if rng.random() < 0.11]
            for topic in about:
                words += rng.choice([topic, *(f"{topic}{k}" for k in range(7))], 6, replace=False).tolist()
            split = "train" if i < TRAIN else "test"
            row = {"id": str(i), "split": split, "date": f"{i:05}", "title": " ".join(words[-3:]), "topics": about}
            lines.write(json.dumps({**row, "text": " ".join(words)}) + "\n")
        lines.write(json.dumps({"id": "x", "split": "unused", "title": "", "text": "left out", "topics": []}) + "\n")
    return path


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return read(write(tmp_path_factory.mktemp("corpus") / "generated.jsonl"))


@pytest.mark.parametrize("kind", ["wh", "eg", "winnow", "perceptron", "rocchio", "pa", "auto"])
def test_a_separable_stream_is_learned_from_what_is_shown(corpus: Corpus, kind: str) -> None:
    stream = Stream(corpus)
    runs = [run(stream, topic, topic, OnlineSettings(kind)) for topic in corpus.largest()]
    ap, f1, utility = means([r.end for r in runs])
    assert (ap, f1, utility) > (0.97, 0.0, 0.0)
    assert f1 > 0.9
    assert utility > 0.85
    assert all(3 < r.judged < 0.5 * TRAIN for r in runs)


def test_every_document_is_judged_if_all_are(corpus: Corpus) -> None:
    relevant = corpus.relevant("wheat")
    third = np.flatnonzero(relevant)[2]
    assert run(Stream(corpus), "wheat", "wheat", OnlineSettings(reader=EVERYTHING)).judged == 3 + TRAIN - third - 1
    assert (
        run(Stream(corpus), "wheat", "wheat", OnlineSettings(reader=SimulatedReader(everything=True, seeds=0))).judged
        == TRAIN
    )


@pytest.mark.parametrize("everything", [False, True])
def test_test_documents_influence_no_model(corpus: Corpus, everything: bool) -> None:
    other = dataclasses.replace(
        corpus,
        documents=[*corpus.documents[:TRAIN], *[("wheat", "wheat and nothing else")] * TEST],
        topics=[*corpus.topics[:TRAIN], *[frozenset({"ships", "wheat"})] * TEST],
    )
    first, second = (
        run(Stream(c), "wheat", "wheat", OnlineSettings(reader=SimulatedReader(everything))) for c in (corpus, other)
    )
    assert model_of(first) == model_of(second)
    assert first.end != second.end


def test_a_holdout_has_no_test_document(corpus: Corpus) -> None:
    held = corpus.holdout
    assert list(held.documents) == list(corpus.documents[:TRAIN])
    assert held.train == 3 * TRAIN // 4


def test_the_curve_ends_with_what_is_served(corpus: Corpus) -> None:
    r = run(Stream(corpus), "ships", "ships", OnlineSettings())
    assert set(POINTS) < set(r.curve)
    assert r.curve[POINTS[-1]] == r.end
    assert r.end.f1 == f_beta(r.end.table)
    relevant = int(corpus.relevant("ships")[TRAIN:].sum())
    assert r.end.table.tp + r.end.table.fn == relevant


def test_without_a_pocket_the_newest_vector_is_served(corpus: Corpus) -> None:
    stream = Stream(corpus)
    with_, without = (
        run(stream, "copper", "copper", OnlineSettings("winnow", pocket=pocket))
        for pocket in (Pocket(), Pocket(every=None))
    )
    assert with_.model.figures.sap is not None
    assert without.model.figures.sap is None


def test_a_topic_that_is_shown_nothing_is_put_under_newer_epochs_as_a_worker_would() -> None:
    """All documents are too far from the one it knows, until a newer epoch shows it what counts as near."""
    rng = np.random.default_rng(1)
    typical, common = [f"own{k}" for k in range(8)], [f"word{k}" for k in range(300)]
    texts = [
        " ".join([*rng.choice(common, 150), typical[i % 8] if rng.random() < 0.1 else "last"]) for i in range(1200)
    ]
    stream = Stream(
        Corpus("far", [("", " ".join(typical))] + [("", text) for text in texts], [frozenset("t")] * 1201, 1000),
        config=Config(semantic=False),  # a projection comes with an epoch of its own, where another has begun
    )
    starts = [stream.begins(e) for e in range(stream.epoch(1000) + 1)]
    assert [stream.epoch(start) for start in starts] == list(range(len(starts)))
    assert stream.begins(len(starts)) == 1000
    reader = SimulatedReader(seeds=1)
    loop = Loop(stream, relevant := stream.corpus.relevant("t"), TopicSpec("t", "nothing"), Plan.of(reader, relevant))
    assert not loop.topic.decide(1, 1000)[0].any()
    assert run(stream, "t", "nothing", OnlineSettings(reader=reader)).judged > 1


def test_topics_are_chosen_by_pattern_and_size(corpus: Corpus) -> None:
    assert set(corpus.largest()) == set(TOPICS)
    assert corpus.largest(patterns=["*", "!w*", "!ships"]) == ["copper"]
    assert corpus.largest(train=TRAIN) == []
    assert matches("cs.DB", ["cs.*", "!cs.AI"])
    assert not matches("cs.AI", ["cs.*", "!cs.AI"])


def test_groups_take_the_place_of_topics(corpus: Corpus) -> None:
    grouped = corpus.grouped(parse_groups("w=wheat|ships,c=*"))
    assert set(grouped.largest()) == {"w", "c"}
    assert grouped.relevant("w").tolist() == (corpus.relevant("wheat") | corpus.relevant("ships")).tolist()
    assert grouped.relevant("c").tolist() == corpus.relevant("copper").tolist()
    assert corpus.grouped({"w": ["wheat"]}).largest() == ["w"]
    with pytest.raises(ValueError, match="write a group as NAME=PATTERN"):
        parse_groups("w=wheat,ships")


def test_peers_are_svms_on_the_labels_so_far_with_the_idf_of_that_moment(corpus: Corpus) -> None:
    stream, relevant = Stream(corpus), corpus.relevant("wheat")
    loop = Loop(stream, relevant, TopicSpec("wheat", "wheat"), Plan.of(SimulatedReader(), relevant))
    loop.advance(200)
    compared = Peers(stream).compare(loop, "wheat")
    features = np.unique(stream.bags.features)
    X = np.zeros((stream.size, len(features)))
    for i in range(stream.size):
        words, counts = stream.bags[i]
        u = np.log1p(counts) * stream.epochs[stream.epoch(200)].frequencies.idf(words)
        X[i, np.searchsorted(features, words)] = u / np.linalg.norm(u)
    for labelled, peer in ((loop.reading.judged, compared.same), (range(200), compared.all)):
        fitted = LinearSVC(random_state=0).fit(X[labelled], relevant[labelled])
        scores, truth = fitted.decision_function(X[TRAIN:]), relevant[TRAIN:]
        assert peer.ap == pytest.approx(average_precision_score(truth, scores), abs=1e-6)
        assert peer.f1 == pytest.approx(f1_score(truth, scores > 0), abs=1e-6)
    assert 0 < compared.random.f1 < compared.all.f1  # a few random labels hold few relevant documents
    assert compared.ours.ap > 0.9


def test_peers_stand_beside_the_curve(corpus: Corpus) -> None:
    stream = Stream(corpus)
    r = run(stream, "wheat", "wheat", OnlineSettings(), Peers(stream))
    assert r.judged >= 50
    assert set(r.peers) == {None, *(n for n in (50, 100, 250, 500) if n <= r.judged)}
    for point, compared in r.peers.items():
        ours = r.end if point is None else r.curve[point]
        assert compared.ours == (ours.ap, ours.f1)


def test_learners_are_named_with_their_parameters() -> None:
    named = learners('wh,wh{"average":false,"eta":0.25},eg')
    assert list(named.values()) == [("wh", {}), ("wh", {"average": False, "eta": 0.25}), ("eg", {})]
    with pytest.raises(ValueError, match="learner must be one of"):
        learners("nothing")


def test_the_command_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    path, queries, out = write(tmp_path / "generated.jsonl"), tmp_path / "queries.json", tmp_path / "out.json"
    queries.write_text(json.dumps({"wheat": "wheat harvest"}))
    options = ["--queries", str(queries), "--out", str(out), "--pocket", "both", "--each", "--learner", "wh,rocchio"]
    answer = CliRunner().invoke(app, ["online", str(path), *options, "--peers"])
    assert answer.exit_code == 0, answer.output
    assert "| rocchio" in answer.output
    assert "random AP" in answer.output
    assert "without" in answer.output
    results = json.loads(out.read_text())["results"]
    assert set(results) == {"wh", "rocchio"}
    assert results["wh"]["end"][1] > 0.9
    assert results["wh"]["peers"]["wheat"]["end"]["all"][0] > 0.9
    answer = CliRunner().invoke(app, ["online", str(path), "--groups", "wheat"])
    assert answer.exit_code == 2
    assert "write a group as" in answer.output


def test_batch_separates_what_can_be_separated(tmp_path: Path) -> None:
    path = write(tmp_path / "generated.jsonl")
    answer = CliRunner().invoke(app, ["batch", str(path), "--orders", "2", "--only", "wh*,pa*,eg*tf*"])
    assert answer.exit_code == 0, answer.output
    rows = [line.split("|")[1:-1] for line in answer.output.splitlines() if "±" in line]
    assert len(rows) == 4
    for row in rows:
        micro_f1, macro_f1, break_even, sap = (float(cell.split("±")[0]) for cell in row[1:5])
        assert min(micro_f1, macro_f1, break_even, sap) > 0.9, row


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        (["--only", "boosting KR*,centroid,naive*tf*,svm"], 6),
        (["--boosting", "--only", "R *0.90*,KR *0.90*S=50 C=1 N=1[23]"], 6),
    ],
)
def test_methods_that_see_everything_at_once_separate_it_too(tmp_path: Path, options: list[str], rows: int) -> None:
    path = write(tmp_path / "generated.jsonl")
    answer = CliRunner().invoke(app, ["batch", str(path), "--orders", "1", *options])
    assert answer.exit_code == 0, answer.output
    lines = [line.split("|")[1:-1] for line in answer.output.splitlines() if re.match(r"\|.*\.\d{3} \|", line)]
    assert len(lines) == rows
    for line in lines:
        assert min(float(cell) for cell in line[1:5]) > 0.9, line


def test_wins_are_counted_topic_by_topic_and_equal_topics_are_nobodys() -> None:
    ours, theirs = [0.9] * 9 + [0.2, 0.5], [0.8] * 9 + [0.4, 0.5]
    result = duel(ours, theirs)
    assert (result.wins, result.losses) == (9, 1)
    assert result.means == pytest.approx((8.8 / 11, 8.1 / 11))
    assert result.significant  # P(Bin(10, ½) ≥ 9) = 11/1024
    assert not duel(ours[4:], theirs[4:]).significant  # P(Bin(6, ½) ≥ 5) = 7/64


def test_duels_stand_beside_those_of_the_paper(tmp_path: Path) -> None:
    path = write(tmp_path / "generated.jsonl")
    answer = CliRunner().invoke(app, ["batch", str(path), "--orders", "1", "--duels"])
    assert answer.exit_code == 0, answer.output
    rows = [line.split("|")[1:-1] for line in answer.output.splitlines() if "rocchio" in line]
    assert [row[4].strip() for row in rows] == [paper for _, _, paper in PAIRS]
    assert all(float(row[3].split()[0]) > 0.5 for row in rows)


def test_cuts_of_methods_know_nothing_of_test_documents(corpus: Corpus) -> None:
    other = dataclasses.replace(corpus, topics=[*corpus.topics[:TRAIN], *[frozenset(TOPICS)] * TEST])
    first, second = (JointRuns(VectorCorpus(c), TOPICS).measure(Joint("centroid"), 1) for c in (corpus, other))
    assert [r.table.tp + r.table.fp for r in first] == [r.table.tp + r.table.fp for r in second]


def test_a_shorter_run_of_boosting_is_the_beginning_of_a_longer_one(corpus: Corpus) -> None:
    runs, fresh = JointRuns(VectorCorpus(corpus), TOPICS), JointRuns(VectorCorpus(corpus), TOPICS)
    short = Joint("boosting", {"S": 5, "N": 2}, cut="zero")
    runs.measure(Joint("boosting", {"S": 20, "N": 2}, cut="zero"), 0)
    assert runs.measure(short, 0) == fresh.measure(short, 0)


def test_batch_thresholds_know_nothing_of_test_documents(corpus: Corpus) -> None:
    other = dataclasses.replace(corpus, topics=[*corpus.topics[:TRAIN], *[frozenset(TOPICS)] * TEST])
    setting = Setting("wh", {"eta": None}, 2)
    first, second = (measure(VectorCorpus(c), "wheat", setting, 1).table for c in (corpus, other))
    assert first.tp + first.fp == second.tp + second.fp  # the labels of test documents do not move the cut


def model_of(r: OnlineRun) -> tuple[bytes, bytes, float, float, int]:
    m = r.model
    return m.linear.features.tobytes(), m.linear.weights.tobytes(), m.accept_above, m.reject_below, r.judged
