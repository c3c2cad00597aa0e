"""Settings: read from the environment, overridden by options, refused with a sentence."""

import sys

import pytest
import Stemmer

from models.core.names import METHOD_KINDS
from models.core.vectors import SERVED_WEIGHTS
from service.config import Config, StartError


def test_the_environment_is_read_when_asked_and_what_is_given_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_PORT", "9000")
    monkeypatch.setenv("SLUICE_WORKERS", "3")
    monkeypatch.setenv("SLUICE_STEMMER", "")  # how a compose file leaves a variable unset
    config = Config.from_env(port=9001, workers=None)
    assert (config.port, config.workers, config.stemmer) == (9001, 3, None)


def test_as_many_weights_are_served_as_are_measured() -> None:
    assert Config().served_weights == SERVED_WEIGHTS  # defined twice, because settings are read before numpy is loaded


@pytest.mark.parametrize(
    ("name", "value", "must_be"),
    [
        ("port", "eighty", "a whole number."),
        ("port", "70000", "at most 65,535."),
        ("workers", "0", "at least 1."),
        ("store_timeout_s", "nan", "a finite number."),
        ("sweep_s", "inf", "a finite number."),
        ("log_level", "loud", "'debug', 'info', 'warning' or 'error'."),
        ("max_topics", "-1", "at least 1."),
        ("stop_words", "perhaps", "true or false."),
        ("stemmer", "klingon", f"one of {', '.join(Stemmer.algorithms())}."),
        ("title_weight", "0", "above 0."),
        ("retrain_method", "magic", f"one of {', '.join(METHOD_KINDS)}."),
    ],
)
def test_a_bad_value_is_refused_with_a_sentence_that_names_it(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, must_be: str
) -> None:
    monkeypatch.setenv(f"SLUICE_{name.upper()}", value)
    with pytest.raises(StartError) as refused:
        Config.from_env()
    assert str(refused.value) == f"SLUICE_{name.upper()} must be {must_be} It is {value!r}."


def test_the_address_of_a_store_is_checked_but_never_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_REDIS", "http://user:hunter2@example.org")
    with pytest.raises(StartError, match="redis://") as refused:
        Config.from_env()
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(Config.from_env(redis="redis://user:hunter2@example.org"))
    for address in ("redis://localhost:6379/0", "rediss://h", "unix:///run/valkey.sock", "redis://a,b?cluster=true"):
        assert Config.from_env(redis=address).redis == address


def test_a_stemmer_that_is_not_installed_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(StartError, match="SLUICE_STEMMER needs PyStemmer"):
        Config.from_env(stemmer="english")


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Config.model_fields.values())
