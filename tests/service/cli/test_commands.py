"""The command line against a running service: pipes in and out, exit codes, one key per document."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.text import Text

from service.cli import main
from service.cli.terminal import literal
from service.client import Client
from service.store.redis.embedded import Embedded
from tests.service.api.feed_checks import check_atom, check_json_feed
from tests.support.api import GRAIN, OIL, QUERY
from tests.support.job_workers import running_workers
from tests.support.live import Live, live
from tests.support.streaming import grain, oil
from tests.support.terminal import Terminal

SLUICE = [sys.executable, "-m", "service.cli.main"]


@pytest.fixture(scope="module")
def server(emptied: Embedded) -> Iterator[Live]:
    with live(emptied.url) as server:
        yield server


@pytest.fixture
def sluice(server: Live) -> Iterator[Client]:
    """A client of a service whose only topic is `crude`."""
    with Client(server.address) as client:
        for topic in list(client.topics()):
            client.delete(topic.id)
        client.create({"id": "crude", "name": "Crude oil", "query": QUERY})
        yield client


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Runner:
    """Runs `sluice` in this process, with pipes in place of a terminal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("SLUICE_URL", address)

    def __call__(self, *arguments: str, stdin: Any = b"") -> Ran:
        raw = stdin if isinstance(stdin, bytes) else b"".join(json.dumps(item).encode() + b"\n" for item in stdin)
        streams = [io.TextIOWrapper(io.BytesIO(content)) for content in (raw, b"", b"")]
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            self._monkeypatch.setattr(sys, name, stream)
        self._monkeypatch.setattr(sys, "argv", ["sluice", *arguments])
        try:
            main.main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        read = []
        for stream in streams[1:]:
            stream.flush()
            stream.seek(0)
            read.append(stream.read())
        return Ran(code, *read)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, server: Live) -> Runner:
    return Runner(monkeypatch, server.address)


# -- documents and judgements ------------------------------------------------------------------------------------------


def test_documents_are_piped_in_and_results_out_in_order(sluice: Client, run: Runner) -> None:
    ran = run("classify", "-", "--topic", "crude", stdin=[{"id": "a"} | OIL, {"id": "b"} | GRAIN])
    assert (ran.code, ran.err) == (0, "")
    assert [(result["document"], result["decisions"][0]["decision"]) for result in ran.lines] == [
        ("a", "accept"),
        ("b", "reject"),
    ]
    assert [offer.document for offer in sluice.review("crude").items] == ["a"]


def test_a_line_that_is_refused_says_so_on_its_line_and_in_the_exit_code(sluice: Client, run: Runner) -> None:
    ran = run("classify", stdin=b'{"id": "a", "text": "opec"}\n\n{"id": "b"}\nnonsense\n')
    assert ran.code == 1
    assert ran.err == "sluice: 2 of 3 documents were refused; their lines say why.\n"
    assert ["document" in line for line in ran.lines] == [True, False, False]


def test_a_remembered_document_is_shown_with_its_decisions_and_judgements(sluice: Client, run: Runner) -> None:
    run("classify", stdin=[{"id": "d", "url": "https://example.org/1"} | OIL])
    run("feedback", "crude", "d", "yes", "--by", "ann")
    (found,) = run("documents", "show", "d", "--now").lines
    assert (found["document"], found["url"], found["text"]) == ("d", "https://example.org/1", OIL["text"])
    assert [each["decision"] for each in found["decisions"]] == ["accept"]
    assert [(each["relevant"], each["by"]) for each in found["judgements"]] == [(True, "ann")]
    assert found["now"]
    ran = run("documents", "show", "never")
    assert (ran.code, ran.err) == (1, "sluice: This document is not remembered (any more).\n")


def test_a_feed_is_printed(sluice: Client, run: Runner) -> None:
    run("classify", stdin=[{"id": "oil"} | OIL])
    check_atom(run("feed", "crude").out.encode())
    (feed,) = run("feed", "crude", "--form", "json", "--unsure", "--limit", "1").lines
    assert [item["title"] for item in check_json_feed(json.dumps(feed).encode())["items"]] == [OIL["title"]]
    assert run("feed", "nowhere").code == 1


def test_what_is_remembered_can_be_searched(sluice: Client, run: Runner) -> None:
    run("classify", stdin=[{"id": "oil", "source": "searched"} | OIL, {"id": "grain", "source": "searched"} | GRAIN])
    here = ["documents", "search", "--source", "searched"]
    assert {one["document"] for one in run(*here).lines} == {"grain", "oil"}
    assert [one["document"] for one in run(*here, '"crude oil" barrel*', "--best").lines] == ["oil"]
    assert [one["document"] for one in run(*here, "--topic", "crude", "--decision", "reject").lines] == ["grain"]
    assert run(*here, "--limit", "1", "--", "-opec").lines[0]["document"] == "grain"
    assert run(*here, "--since", "2099-01-01").lines == []
    assert run(*here, "--decision", "reject").err.startswith("sluice: The search cannot be understood.")
    assert run(*here, "--decision", "maybe").code == 2


def test_judgements_are_listed_and_taken_back(sluice: Client, run: Runner) -> None:
    run("classify", stdin=oil(2))
    run("feedback", "crude", "o0", "yes", "--by", "ann")
    run("feedback", "crude", "o1", "no")
    listed = run("topics", "judgements", "crude").lines
    assert [(judgement["document"], judgement["relevant"], judgement["by"]) for judgement in listed] == [
        ("o1", False, None),
        ("o0", True, "ann"),
    ]
    (done,) = run("topics", "withdraw", "crude", "o1").lines
    assert (done["status"], done["version"]) == ("withdrawn", 4)
    assert run("topics", "withdraw", "crude", "o1").err == "sluice: This document has no judgement in this topic.\n"
    assert [judgement["document"] for judgement in run("topics", "judgements", "crude").lines] == ["o0"]


def test_a_change_is_previewed_and_parameters_are_given(sluice: Client, run: Runner) -> None:
    run("classify", stdin=oil(3, "tried"))
    (shown,) = run("topics", "change", "crude", "--reject-if", "report", "--name", "later", "--preview").lines
    assert shown["unjudged"]["after"]["accepted"] < shown["unjudged"]["before"]["accepted"]
    assert sluice.topic("crude").rules.reject_if is None
    ran = run("topics", "change", "crude", "--learner", "winnow", "--param", "variant=positive", "--param", "alpha=1.5")
    assert ran.code == 0
    assert sluice.topic("crude").learner.params == {"variant": "positive", "alpha": 1.5}
    for wrong in (["--param", "alpha=2"], ["--learner", "eg", "--param", "eta"]):
        assert run("topics", "change", "crude", *wrong).code == 2
    assert (
        "/learner: The parameter eta must be a finite number or null."
        in run("topics", "change", "crude", "--learner", "eg", "--param", "eta=NaN").err
    )


def test_plain_text_is_classified_and_explained_and_not_remembered(sluice: Client, run: Runner, tmp_path: Path) -> None:
    file = tmp_path / "texts"
    file.write_text("OPEC cuts crude output\nRain in Kansas\n")
    ran = run("classify", str(file), "--text", "--explain", "--all", "--no-store")
    first, second = (result["decisions"][0] for result in ran.lines)
    assert (first["decision"], second["decision"]) == ("accept", "reject")
    assert first["flip"]["without"]
    assert sluice.review("crude").items == []


def test_a_line_of_text_that_is_not_utf_8_is_refused_in_its_place(sluice: Client, run: Runner) -> None:
    ran = run("classify", "--text", "--all", stdin=b"opec output\np\xe9trole\nrain\n")
    assert (ran.code, ran.err) == (1, "sluice: 1 of 3 documents was refused; its line says why.\n")
    assert ["document" in line for line in ran.lines] == [True, False, True]
    assert ran.lines[1]["detail"] == "This is not valid UTF-8, from byte 12 on."


def test_judgements_are_given_one_by_one_or_piped(sluice: Client, run: Runner) -> None:
    run("classify", stdin=[*oil(2), *grain(2)])
    (learned,) = run("feedback", "crude", "o0", "yes", "--by", "ann").lines
    assert (learned["status"], learned["version"]) == ("learned", 2)
    (graded,) = run("feedback", "crude", "o0", "3", "--by", "ann").lines
    assert (graded["status"], graded["relevant"], graded["grade"]) == ("corrected", True, 3)
    assert run("feedback", "crude", "o0", "4").code == 2
    judged = [{"topic": "crude", "document": f"g{n}", "relevant": False} for n in range(3)]
    ran = run("feedback", "-", stdin=judged)
    assert (ran.code, [result["status"] for result in ran.lines]) == (1, ["learned", "learned", 404])
    assert ran.err == "sluice: 1 of 3 judgements was refused; its line says why.\n"
    assert [(judgement.document, judgement.grade, judgement.by) for judgement in sluice.judgements("crude")] == [
        ("g1", None, None),
        ("g0", None, None),
        ("o0", 3, "ann"),
    ]


def test_what_waits_for_a_judgement_is_listed_where_nobody_can_be_asked(sluice: Client, run: Runner) -> None:
    run("classify", stdin=oil(3, "listed"))
    assert {offer["document"] for offer in run("review", "crude").lines} == {"listed0", "listed1", "listed2"}
    assert len(run("review", "crude", "--limit", "1").lines) == 1


# -- topics ------------------------------------------------------------------------------------------------------------


def test_what_passed_is_listed_by_score(sluice: Client, run: Runner) -> None:
    sluice.classify(oil(4))
    scores = [one["score"] for one in run("ranked", "crude").lines]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    sluice.feedback("crude", "o1", True)
    assert {one["document"] for one in run("ranked", "crude", "--unjudged").lines} == {"o0", "o2", "o3"}
    assert len(run("ranked", "crude", "--limit", "2", "--since", "2020-01-01").lines) == 2
    assert run("ranked", "crude", "--since", "2099-01-01T00:00:00").lines == []
    assert run("ranked", "crude", "--since", "2099-01-01T00:00:00Z").lines == []
    refused = run("ranked", "crude", "--since", "yesterday")
    assert refused.code == 2
    message = "This must be a time such as 2026-03-01 or 2026-03-01T12:00:00Z."
    assert refused.err.endswith(f"Error: Invalid value for '--since': {message}\n")


def test_a_measure_to_maximise_is_given_on_the_command_line(run: Runner) -> None:
    (made,) = run("topics", "create", "best", "--maximise", "f_beta=2", "--goal", "max_abstain=.1").lines
    assert made["goal"] == {"max_abstain": 0.1, "maximise": {"f_beta": 2.0}, "mode": "best"}
    (measured,) = run("topics", "change", "best", "--maximise", "hit=3", "--maximise", "miss=1").lines
    assert measured["goal"]["maximise"] == {"utility": {"hit": 3.0, "false_alarm": 1.0, "miss": 1.0}}
    assert run("topics", "change", "best", "--maximise", "break_even").lines[0]["goal"]["maximise"] == "break_even"
    assert run("topics", "delete", "best").code == 0


def test_thresholds_are_set_on_the_command_line_and_given_back(run: Runner) -> None:
    (made,) = run("topics", "create", "fixed", "--query", "wheat", "--cuts", ".1,.3").lines
    assert made["cuts"] == {"reject_below": 0.1, "accept_above": 0.3}
    assert (made["status"]["reject_below"], made["status"]["accept_above"]) == (0.1, 0.3)
    assert run("topics", "change", "fixed", "--cuts", ".2").lines[0]["cuts"] == {"band": 0.2}
    assert "cuts" not in run("topics", "change", "fixed", "--cuts", "").lines[0]
    assert run("topics", "change", "fixed", "--cuts", ".1,.2,.3").code == 2
    assert run("topics", "delete", "fixed").code == 0


def test_a_topic_lives_on_the_command_line(sluice: Client, run: Runner) -> None:
    settings = [
        "--query",
        "wheat maize",
        "--goal",
        "min_precision=.9",
        "--goal",
        "max_abstain=.2",
        "--reject-if",
        "sport",
    ]
    (made,) = run("topics", "create", "grain", *settings).lines
    assert made["goal"] == {"min_precision": 0.9, "max_abstain": 0.2, "mode": "best"}
    (changed,) = run("topics", "change", "grain", "--accept-if", "harvest", "--learner", "eg", "--name", "Grain").lines
    assert changed["rules"] == {"accept_if": "harvest", "reject_if": "sport"}
    assert (changed["learner"]["kind"], changed["name"], changed["query"]) == ("eg", "Grain", "wheat maize")
    (pinned,) = run("topics", "change", "grain", "--pin", "silo", "--pin", "Acre", "--ban", "reuters").lines
    assert pinned["terms"] == {"pin": ["silo", "Acre"], "ban": ["reuters"]}
    (fewer,) = run("topics", "change", "grain", "--pin", "").lines
    assert fewer["terms"] == {"pin": [], "ban": ["reuters"]}
    (rare,) = run("topics", "change", "grain", "--pocket", "25").lines
    assert rare["pocket"]["every"] == 25
    assert run("topics", "create", "newest", "--query", "wheat", "--pocket", "off").lines[0]["pocket"]["every"] is None
    assert run("topics", "delete", "newest").code == 0
    assert run("topics", "change", "grain", "--pocket", "never").err.endswith("or off, not 'never'.\n")
    (freed,) = run("topics", "change", "grain", "--goal", "").lines
    assert freed["goal"] == {}
    (grouped,) = run("topics", "change", "grain", "--group", "queue", "--group-rule", "exactly_one").lines
    assert grouped["group"] == {"name": "queue", "rule": "exactly_one", "margin": 0.1}
    assert run("topics", "change", "grain", "--group-margin", ".2").code == 2
    (left,) = run("topics", "change", "grain", "--group", "", "--ranking", "pairwise").lines
    assert ("group" in left, left["ranking"]["kind"]) == (False, "pairwise")
    assert run("topics", "create", "pinned", "--pin", "silo").lines[0]["terms"]["pin"] == ["silo"]
    assert run("topics", "delete", "pinned").code == 0
    assert [topic["id"] for topic in run("topics").lines] == [topic["id"] for topic in run("topics", "list").lines]
    assert [version["version"] for version in run("topics", "versions", "grain").lines] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert run("topics", "restore", "grain", "1").lines[0]["status"]["version"] == 9
    assert run("topics", "show", "grain").lines[0]["learner"]["kind"] == "wh"
    assert run("topics", "metrics", "grain").lines[0]["judgements"] == 0
    assert run("topics", "delete", "grain") == (0, "", "")
    assert [topic.id for topic in sluice.topics()] == ["crude"]


def test_a_topic_leaves_as_a_file_and_comes_back(sluice: Client, run: Runner, tmp_path: Path) -> None:
    sluice.feedback("crude", OIL | {"id": "d1"}, True)
    file = tmp_path / "crude.ndjson"
    assert run("export", "crude", "--to", str(file)) == (0, "", "")
    assert run("export", "crude").out == file.read_text()
    taken = "sluice: There is a topic 'crude' already; choose another with --id, or replace it with --replace.\n"
    assert run("import", str(file)) == (1, "", taken)
    (copy,) = run("import", str(file), "--id", "copy").lines
    assert (copy["id"], copy["status"]["version"]) == ("copy", 2)
    sluice.withdraw("crude", "d1")
    assert run("import", "-", "--replace", stdin=file.read_bytes()).lines[0]["status"]["version"] == 2
    broken = run("import", "-", stdin=file.read_bytes()[:-1000])
    assert broken.code == 1
    assert broken.err.startswith("sluice: ")
    assert "line" in broken.err.lower()


# -- jobs --------------------------------------------------------------------------------------------------------------


def test_jobs_are_submitted_listed_watched_and_cancelled(sluice: Client, run: Runner, embedded: Embedded) -> None:
    (waiting,) = run("jobs", "compare", "crude", "--method", "rocchio").lines
    assert (waiting["kind"], waiting["state"]) == ("compare", "queued")
    assert run("jobs", "cancel", waiting["id"]).lines[0]["state"] == "cancelled"
    over = run("jobs", "wait", waiting["id"])
    assert (over.code, over.lines[0]["state"]) == (1, "cancelled")
    assert over.err.startswith("sluice: The job did not succeed (cancelled)")
    with running_workers(embedded.url):
        (trained,) = run("jobs", "retrain", "rocchio", "--topic", "crude", "--publish", "never", "--wait").lines
    assert (trained["state"], trained["result"]["total"]) == ("succeeded", 1)
    (queued,) = run("jobs", "backfill", "--topic", "crude").lines
    assert [job["id"] for job in run("jobs").lines] == [queued["id"], trained["id"], waiting["id"]]
    assert run("jobs", "show", trained["id"]).lines == [trained]
    assert [job.id for job in sluice.jobs(limit=1)] == [queued["id"], trained["id"], waiting["id"]]


# -- when it cannot be -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["topics", "show", "none"], 1, "sluice: There is no topic 'none'."),
        (["topics", "create", "Crude!"], 1, "sluice: Some fields are not valid. /id"),
        (
            ["classify", "no-such-file"],
            1,
            "sluice: There is no file 'no-such-file'; give a file of documents, or - for stdin.\n",
        ),
        (
            ["feedback", "oil"],
            1,
            "sluice: There is no file 'oil'; give TOPIC DOCUMENT yes|no|0..3, or a file of judgements, "
            "or - for stdin.\n",
        ),
        (["import", "oil"], 1, "sluice: There is no file 'oil'; give a file from `sluice export`, or - for stdin.\n"),
        (["classify", "/"], 1, "sluice: The file '/' cannot be read: Is a directory.\n"),
        (["jobs", "show", "nope"], 1, "sluice: There is no job 'nope'.\n"),
        (["topics", "show", "Nope"], 1, "sluice: There is no topic 'Nope'.\n"),
        (["topics", "--url", "localhost:8000"], 1, "sluice: The address of the service must be a URL"),
        (["topics", "--url", "http://"], 1, "sluice: The address of the service must be a URL"),
        (["feedback", "crude", "d1", "perhaps"], 2, "Usage:"),
        (
            ["feedback", "crude", "d1"],
            2,
            "Error: Give TOPIC DOCUMENT yes|no|0..3, or a file of judgements, or - for stdin.\n",
        ),
        (["topics", "restore", "crude", "x"], 2, "Error: Invalid value for 'VERSION': This must be a whole number.\n"),
        (["review", "crude", "--limit", "101"], 2, "Error: Invalid value for '--limit': This must be at most 100.\n"),
        (["topics", "restore", "crude", "9"], 1, "sluice: Version 9 cannot be restored, only version 1.\n"),
        (["topics", "change", "crude"], 2, "\nError: Give at least one setting to change.\n"),
        (
            ["topics", "create", "x", "--goal", "precise"],
            2,
            "Error: A goal has the form min_precision=.9, not 'precise'.\n",
        ),
        (
            ["topics", "create", "x", "--goal", "min_precision=nan"],
            2,
            "form min_precision=.9, not 'min_precision=nan'.\n",
        ),
        (
            ["topics", "create", "x", "--maximise", "recall=1"],
            2,
            "Error: Maximise f_beta=2, break_even, or a utility of hit=2, false_alarm=1 and miss=0.\n",
        ),
        (
            ["topics", "create", "x", "--maximise", "f_beta=two"],
            2,
            "form f_beta=2, break_even or hit=2, not 'f_beta=two'.\n",
        ),
        (["topics", "create", "x", "--audit", "inf"], 2, "Error: A share for --audit is a number such as .01.\n"),
        (
            ["topics", "--url", "http://127.0.0.1:9", "delete", "crude"],
            2,
            "Error: Write --url after delete, not before it.\n",
        ),
        (["jobs", "--json", "list"], 2, "Error: Write --json after list, not before it.\n"),
        (["no-such-command"], 2, "Usage:"),
        (["demo", "--stories", "5"], 2, "Usage:"),
    ],
)
def test_whatever_is_refused_is_said_in_a_sentence(
    sluice: Client, run: Runner, arguments: list[str], code: int, message: str
) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert ("Usage:" in ran.err) == (code == 2)


def test_a_service_that_is_not_there_is_said_to_be_missing(run: Runner) -> None:
    ran = run("topics", "--url", "http://127.0.0.1:9")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "sluice: Cannot connect to Sluice. Is it running, and is the address right?\n"


def test_whoever_reads_only_the_beginning_is_no_mishap(sluice: Client, server: Live) -> None:
    documents = b"".join(json.dumps(document).encode() + b"\n" for document in oil(2000))
    environment = os.environ | {"SLUICE_URL": server.address}
    for source in ("-", "/dev/stdin"):
        piped = " ".join([*SLUICE, "classify", source, "--no-store", "--all", "|", "head", "-n", "1"])
        ran = subprocess.run(["bash", "-c", piped], input=documents, env=environment, capture_output=True, timeout=60)
        assert (len(ran.stdout.splitlines()), ran.stderr) == (1, b"")


@pytest.mark.parametrize("command", ["topics", "export crude"])
def test_an_answer_that_cannot_be_written_is_said_in_a_sentence(
    sluice: Client, server: Live, tmp_path: Path, command: str
) -> None:
    """A full disk, or a limit on the size of files."""
    environment = os.environ | {"SLUICE_URL": server.address, "PYTHONDONTWRITEBYTECODE": "1"}
    limited = f"ulimit -f 0; exec {' '.join(SLUICE)} {command} > {tmp_path / 'answer'}"
    ran = subprocess.run(["bash", "-c", limited], env=environment, capture_output=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (1, b"sluice: Could not write the output: File too large.\n")


# -- keys --------------------------------------------------------------------------------------------------------------


def test_keys_are_made_used_listed_and_revoked(
    run: Runner, sluice: Client, embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = "an administrator's key, 32 characters"
    with live(embedded.url, access="keys", admin_key=admin) as guarded:
        monkeypatch.setenv("SLUICE_URL", guarded.address)
        refused = run("topics")
        assert (refused.code, refused.out) == (1, "")
        assert "SLUICE_KEY" in refused.err
        monkeypatch.setenv("SLUICE_KEY", admin)
        (made,) = run("keys", "create", "ann", "--scope", "read", "--scope", "judge", "--expires", "2099-12-31").lines
        assert [key["name"] for key in run("keys").lines] == ["ann"]
        assert made["key"] not in run("keys").out
        monkeypatch.setenv("SLUICE_KEY", made["key"])
        assert [topic["id"] for topic in run("topics").lines] == ["crude"]
        assert "manage" in run("topics", "create", "new").err
        monkeypatch.setenv("SLUICE_KEY", admin)
        assert run("keys", "revoke", made["id"]).code == 0
        assert run("keys").lines == []
    monkeypatch.setenv("SLUICE_KEY", "two\nlines")
    assert "copy it again" in run("topics").err


# -- at a terminal -----------------------------------------------------------------------------------------------------


def test_documents_are_judged_with_one_key_each(sluice: Client, server: Live) -> None:
    sluice.classify(oil(5, "asked"))
    terminal = Terminal([*SLUICE, "review", "crude", "--by", "ann"], SLUICE_URL=server.address)
    terminal.wait_for("quit")
    for key, answer in (("y", "relevant"), ("x", ""), ("n", "not relevant"), ("2", "grade 2"), ("s", "skipped")):
        terminal.press(key)
        if answer:
            terminal.wait_for(answer)
            terminal.wait_for("quit")
    terminal.press("q")
    assert terminal.end() == 0
    assert "3 judged." in terminal.shown
    labels = [(judgement.relevant, judgement.grade) for judgement in sluice.judgements("crude")]
    assert labels == [(True, 2), (False, None), (True, None)]


def test_progress_is_shown_beside_the_answer_and_not_in_it(sluice: Client, server: Live, tmp_path: Path) -> None:
    documents, results = tmp_path / "documents", tmp_path / "results"
    documents.write_text("".join(json.dumps(document) + "\n" for document in oil(1100)))
    terminal = Terminal(
        [*SLUICE, "classify", str(documents), "--no-store", "--all"], out=results, SLUICE_URL=server.address
    )
    assert terminal.end() == 0
    assert "documents" in terminal.shown
    assert "1,100" in terminal.shown
    assert [json.loads(line)["document"] for line in results.read_text().splitlines()] == [f"o{n}" for n in range(1100)]


def test_people_are_shown_text(sluice: Client, server: Live) -> None:
    sluice.classify(oil(4))
    for arguments, text in (
        (["topics"], "Crude oil"),
        (["topics", "show", "crude"], "0 relevant, 0 not"),
        (["topics", "versions", "crude"], "create"),
        (["topics", "metrics", "crude"], "nothing known yet"),
        (["topics", "overview"], "r_precision"),
        (["topics", "curve", "crude"], "No relevant document"),
        (["topics", "tradeoff", "crude"], "No relevant document"),
        (["ranked", "crude"], "Report o0"),
        (["documents", "show", "o0", "--now"], "Report o0"),
        (["documents", "search", "o0"], "1;4mo0"),
        (["topics", "--json"], '{"id":"crude"'),
    ):
        terminal = Terminal([*SLUICE, *arguments], SLUICE_URL=server.address)
        assert terminal.end() == 0
        assert text in terminal.shown, arguments


def test_a_text_cannot_steer_the_terminal() -> None:
    escaped = literal("\x1b[31mred\x1b]52;c;ZXZpbA==\x07\x9b2J\n[bold]bold[/]")
    assert Text.from_markup(escaped).plain == "�[31mred�]52;c;ZXZpbA==��2J\n[bold]bold[/]"
