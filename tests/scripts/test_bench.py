"""The benchmarks run to their end on a small generated corpus, without peers, and count what can be counted."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from scripts.benchmarks import boost, decide
from scripts.benchmarks.__main__ import app
from scripts.benchmarks.contest import Seconds, Turn, fitting, rates, repeated, times_faster
from scripts.benchmarks.figures.requirements import REQUIREMENTS, reached
from scripts.benchmarks.flow import TEAMS
from scripts.benchmarks.peers import _line
from scripts.benchmarks.topics import MIN_DOCUMENTS, TopicMaker
from scripts.common.corpus import generate
from tests.scripts.test_setup import LOCKS, pins
from tests.support import ROOT

DOCUMENTS = 600
SMALL = ("--generated", str(DOCUMENTS))


def run(command: str, *arguments: str) -> dict[str, Any]:
    """What the command prints for programs."""
    result = CliRunner().invoke(app, [command, *SMALL, *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    printed: dict[str, Any] = json.loads(result.stdout)
    assert printed["corpus"] == "generated"
    assert set(printed["machine"]) == {"processor", "python", "numpy", "numba"}
    return printed


def test_deciding_counts_weights_bytes_and_hits_the_same_each_time() -> None:
    peers = ("--peers-up-to", "0", "--turn-s", "0.02", "--turns", "2")
    (row,) = run("decide", "--topics", "40", "--weights", "30", *peers)["deciding"]
    assert row["topics"] == 40
    assert row["served_weights"] == 40 * 30
    assert row["docs"]["sluice"]["per_s"] > 0
    assert row["docs"].keys() == row["times_faster"].keys() == {"sluice"}
    assert row["one_document"].keys() == row["put"].keys()
    again = decide.SluiceDecider(decide.Sizes(None, DOCUMENTS, 30, 0.01), 40).facts()
    assert {name: row[name] for name in ("bytes_per_weight", "dense_mb", "hits_per_document")} == {
        name: again[name] for name in ("bytes_per_weight", "dense_mb", "hits_per_document")
    }
    assert 6 < row["bytes_per_weight"] < 6 + 20  # a posting, and no more than a row for each


def test_judging_looks_at_every_length_of_the_log() -> None:
    judging = run("learn", "--no-peers", "--judgements", "20", "--lengths", "5,12")["judging"]
    assert judging["one"].keys() == {"sluice"}
    assert 0 < judging["one"]["sluice"]["p50_ms"] <= judging["one"]["sluice"]["p99_ms"]
    assert [row["judgements"] for row in judging["by_length"]] == [5, 12]
    assert all(row["one_ms"] > 0 and row["refold_ms"] > 0 for row in judging["by_length"])


def test_topics_are_retrained_while_others_ask() -> None:
    asked = ("--generated", "2000", "--topics", "1", "--judgements", "60", "--methods", "centroid")
    (row,) = run("retrain", *asked)["retraining"]
    assert (row["method"], row["topics"]) == ("centroid", 1)
    assert 0 <= row["sap_candidate"] <= 1
    assert min(row["classify_requests"], row["feedback_requests"]) > 0


def test_a_cold_start_finds_every_topic() -> None:
    starting = run("start", "--stored", "70", "--weights", "20", "--turns", "1")["starting"]
    assert (starting["topics"], starting["weights"]) == (70, 20)
    assert min(starting[name] for name in ("store_s", "load_s", "ready_s")) > 0


def test_boosting_by_two_processes_is_that_of_one() -> None:
    (row,) = run("boost", "--rounds", "20", "--rho", "0.9", "--turns", "1", "--no-dask")["boosting"]
    assert (row["rho"], row["rounds"], row["documents"], row["same"]) == (0.9, 20, DOCUMENTS // 2, True)
    assert row["by"].keys() == {"one core", "two processes"}
    alone, two = row["by"].values()
    assert alone["times_faster"] == alone["times_cpu"] == 1.0
    assert two["cpu_s"] <= two["all_cpu_s"]
    assert two["peak_mb"] > alone["peak_mb"] > 0


def test_a_run_too_short_for_the_systems_clock_is_as_long_as_its_tick() -> None:
    """Twenty rounds on a fast machine took less than the hundredth of a second in which processes are timed."""
    long, short = (boost.BoostRun(1.0, cpu_s, cpu_s, 0.0, 0.0, (1, 1, 1), "") for cpu_s in (0.04, 0.0))
    assert boost._figures([short], [long])["times_cpu"] == 4.0
    assert boost._figures([short], [short])["times_cpu"] == 1.0


def test_durability_is_measured_with_and_without_a_sync_for_each_write() -> None:
    enduring = run("endure", "--turn-s", "0.1", "--turns", "1")["enduring"]
    assert list(enduring) == ["append, 1 client", "append, 16 clients", "judgement, 1 client", "judgement, 16 clients"]
    assert all(rate > 0 for rates in enduring.values() for rate in rates.values())


def test_waiting_is_measured_and_a_frozen_store_refuses_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_STORE_TIMEOUT_S", "5")
    waiting = run("wait", "--turn-s", "0.1", "--turns", "1", "--log", "30", "--processes", "2")["waiting"]
    assert list(waiting["beside"]) == ["stored", "explained", "every decision"]
    assert all(0 < row["p50_ms"] <= row["p99_ms"] <= row["max_ms"] for row in waiting["beside"].values())
    assert waiting["served"]["requests"] == 10
    assert min(waiting["long_log"].values()) > 0
    assert 0 < waiting["frozen"]["p50_s"] <= waiting["frozen"]["max_s"]
    assert waiting["rules_ms"] > 0


def test_documents_flow_through_http_and_through_consumers() -> None:
    flowing = run("flow", "--documents", "500", "--topics", "5", "--lines", "1000", "--heats", "1")["flowing"]
    rates = [flowing[what] for what in ("scored", "stored", "ceiling", "feedback", *TEAMS)]
    assert all(rate["per_s"] > 0 for rate in rates)
    assert all(flowing[team]["store_us"] >= 0 for team in TEAMS)
    assert flowing["of_ceiling"] == flowing["scored"]["per_cpu_s"] / flowing["ceiling"]["per_cpu_s"]
    assert list(flowing["memory"]) == ["plain", "duplex"]
    for way in flowing["memory"].values():
        assert way["growth_mb"] == way["all_mb"] - way["tenth_mb"]
        assert way["tenth_mb"] > 50
    one, two, one_core = (flowing[team]["per_s"] for team in TEAMS)
    assert (flowing["two_over_one"], flowing["two_cores_over_one"]) == (two / one, two / one_core)


def test_topics_are_those_of_the_corpus_and_then_documents_that_share_a_word() -> None:
    corpus = generate(DOCUMENTS)
    past = TopicMaker(corpus)
    of_corpus = {topic for topics in corpus.topics for topic in topics}
    kinds = list(past.kinds(len(of_corpus) + 10))
    assert len(kinds) == len(of_corpus) + 10
    assert min(map(len, kinds)) >= MIN_DOCUMENTS
    assert [kind.tolist() for kind in kinds] == [kind.tolist() for kind in past.kinds(len(kinds))]
    largest = max(of_corpus, key=lambda name: sum(name in topics for topics in corpus.topics))
    assert len(kinds[0]) == sum(largest in topics for topics in corpus.topics)


def test_peers_get_words_or_counted_words() -> None:
    document = ("Oil up", "OPEC cut oil: 3.5 barrels|day")
    assert _line(document, "words") == "| oil up opec cut oil 3 5 barrels day"
    assert _line(document, "counts") == "| oil:2 up:1 opec:1 cut:1 3:1 5:1 barrels:1 day:1"


def test_rates_are_medians_and_ratios_are_of_turns_side_by_side() -> None:
    ours = [Turn(10, Seconds(1.0, 0.5)), Turn(10, Seconds(10.0, 1.0)), Turn(10, Seconds(2.0, 1.0))]
    theirs = [Turn(1, Seconds(1.0, 0.5)), Turn(1, Seconds(10.0, 1.0)), Turn(1, Seconds(1.0, 1.0))]
    assert rates(ours) == {"per_s": 5.0, "per_cpu_s": 10.0, "turns": 3}
    assert times_faster(ours, theirs) == {"wall": 10.0, "cpu": 10.0}
    assert repeated("abc", 7) == list("abcabca")
    assert 1 <= fitting(lambda items: sum(range(100 * len(items))), range(5), 0.001) <= 200_000


def test_only_goals_that_were_measured_are_judged() -> None:
    assert list(reached({})) == []
    starting = {"starting": {"load_s": 7.0}}
    ((goal, figure, good),) = reached(starting)
    assert (figure, good, goal.wanted) == (7.0, False, "≤ 5 s")
    assert len({goal.what for goal in REQUIREMENTS}) == len(REQUIREMENTS)


def test_the_peers_are_locked_beside_what_they_are_measured_with() -> None:
    bench, text = pins("requirements-bench.lock"), (ROOT / "requirements-bench.lock").read_text()
    assert {"matplotlib", "river", "scikit-learn", "vowpalwabbit"} <= bench.keys()
    for lock in LOCKS:
        shared = pins(lock).keys() & bench.keys()
        assert {name: bench[name] for name in shared} == {name: pins(lock)[name] for name in shared}
    assert pins("requirements.lock").keys() <= bench.keys()
    assert "://" not in text
