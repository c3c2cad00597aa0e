"""Rules: what a reader expects of each construct, and equality with an evaluation that scans lists of tokens."""

import copy
import unicodedata
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import models.text.rules
from models.text.analysis import Analysis, occurrences
from models.text.rules import MAX_CHARACTERS, MAX_DEPTH, MAX_WORDS, Clause, Rule, RuleError, Subject, Word, parse

STEADY = settings(deadline=None, derandomize=True, max_examples=200)

OIL = Subject.of(
    "OPEC meets in Vienna", "Crude oil rose. U.S. stocks of crude-oil fell; 東京都は静か。", "Reuters News"
)


def tokens(zone: str) -> list[str]:
    """As the service reads it, composed."""
    return [unicodedata.normalize("NFC", term.canonical) for term, _ in occurrences("", zone, Analysis())]


@dataclass(frozen=True)
class Zones:
    title: str
    text: str
    source: str

    def subject(self) -> Subject:
        return Subject.of(self.title, self.text, self.source)


# The oracle: a formula is a nested tuple that no parser has seen; its words are searched for one place at a time.
Formula = tuple[object, ...]


def holds(formula: Formula, document: Zones) -> bool:
    match formula:
        case ("word", field, text, prefix):
            zones = {"": [document.title, document.text], "title:": [document.title], "source:": [document.source]}
            return any(occurs(tokens(str(text)), bool(prefix), tokens(zone)) for zone in zones[str(field)])
        case ("not", tuple(inner)):
            return not holds(inner, document)
        case ("and", tuple(left), tuple(right)):
            return holds(left, document) and holds(right, document)
        case ("or", tuple(left), tuple(right)):
            return holds(left, document) or holds(right, document)
    raise AssertionError(formula)


def occurs(wanted: list[str], prefix: bool, found: list[str]) -> bool:
    for start in range(len(found) - len(wanted) + 1):
        here = found[start : start + len(wanted)]
        if here[:-1] == wanted[:-1] and (here[-1] == wanted[-1] or (prefix and here[-1].startswith(wanted[-1]))):
            return True
    return False


def written(formula: Formula) -> str:
    """With every parenthesis there can be, so that precedence does not matter."""
    match formula:
        case ("word", field, text, prefix):
            star = "*" if prefix else ""
            return f'{field}"{text}{star}"' if " " in str(text) else f"{field}{text}{star}"
        case ("not", tuple(inner)):
            return f"NOT ({written(inner)})"
        case ("and", tuple(left), tuple(right)):
            return f"({written(left)}) AND ({written(right)})"
        case ("or", tuple(left), tuple(right)):
            return f"({written(left)}) OR ({written(right)})"
    raise AssertionError(formula)


# Few words that begin alike, in several scripts, so that rules and documents meet; café in both its encodings.
VOCABULARY = [
    "a",
    "ab",
    "AB",
    "abc",
    "b",
    "a-b",
    "cafe",
    "café",
    "cafe\u0301s",
    "서우",
    "서울",
    "東",
    "東京",
    "京都",
    "東京都",
]
VOCABULARY += ["हिन्द", "हिन्दी", "Straße", "strasse", "U.S", "🚀"]
words = st.one_of(st.sampled_from(["a", "ab"]), st.sampled_from(VOCABULARY))
phrases = st.lists(words, min_size=1, max_size=3).map(" ".join)
texts = st.builds(str.join, st.sampled_from([" ", "\n", ", ", " AND “"]), st.lists(words, max_size=12))
documents = st.builds(Zones, texts, texts, texts)
atoms = st.tuples(st.just("word"), st.sampled_from(["", "", "title:", "source:"]), phrases, st.booleans())
formulas: st.SearchStrategy[Formula] = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.just("not"), st.tuples(st.just("not"), inner)),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
    ),
    max_leaves=12,
)
# Texts near the language: its signs and words in any order, and any text at all.
PIECES = [
    "AND",
    "OR",
    "NOT",
    "(",
    ")",
    '"',
    "*",
    ":",
    "title:",
    "source:",
    "a",
    "U.S.",
    "東京",
    "-",
    "?",
    " ",
    "“",
    "：",
    "ﷺ",
]
scribbles = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join),
    st.text(st.characters(exclude_categories=()), max_size=60),
)


@STEADY
@given(formulas, documents)
def test_a_rule_matches_what_scanning_the_tokens_says(formula: Formula, document: Zones) -> None:
    assert parse(written(formula)).matches(document.subject()) is holds(formula, document)


@STEADY
@given(formulas)
def test_the_canonical_text_says_the_same_rule(formula: Formula) -> None:
    rule = parse(written(formula))
    assert parse(str(rule)) == rule
    assert str(parse(str(rule))) == str(rule)


@STEADY
@given(scribbles)
def test_any_text_is_a_rule_that_reads_back_or_an_error_at_a_place_in_it(text: str) -> None:
    result = rule_or_error(text)
    if isinstance(result, RuleError):
        assert 0 <= result.position <= len(text)
        assert result.message
    else:
        assert parse(str(result)) == result
        assert result.words()


def rule_or_error(text: str) -> Rule | RuleError:
    try:
        return parse(text)
    except RuleError as error:
        return error


@STEADY
@given(formulas, formulas, documents)
def test_de_morgan(a: Formula, b: Formula, document: Zones) -> None:
    p, q, subject = written(a), written(b), document.subject()
    neither = parse(f"NOT (({p}) OR ({q}))").matches(subject)
    assert neither is parse(f"NOT ({p}) AND NOT ({q})").matches(subject)
    not_both = parse(f"NOT (({p}) AND ({q}))").matches(subject)
    assert not_both is parse(f"NOT ({p}) OR NOT ({q})").matches(subject)


@STEADY
@given(st.text(st.characters(max_codepoint=0x250), max_size=80), st.text(max_size=80))
def test_documents_are_read_as_the_service_reads_them(title: str, text: str) -> None:
    """The short way for ASCII gives the terms of the long one, wherever the two alternate."""
    line = Subject.of(title, text).zones[None].line
    assert line == f" {' '.join(tokens(title))}  {' '.join(tokens(text))} "


@pytest.mark.parametrize("zone", ["".join(map(chr, range(128))), "x" * 1000 + " " + "9" * 65])
def test_all_of_ascii_and_long_words_are_read_as_the_service_reads_them(zone: str) -> None:
    assert Subject.of(zone, "").zones["title"].line == f" {' '.join(tokens(zone))} "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("crude", True),
        ("CRUDE Oil", True),  # both, anywhere
        ("crude gas", False),
        ("crude OR gas", True),
        ("gas OR NOT coal", True),
        ("NOT sport", True),
        ("NOT NOT sport", False),
        ("opec", True),  # in the title
        ("title:opec", True),
        ("title:crude", False),
        ("reuters", False),  # the source is not the text
        ("source:reuters", True),
        ("source:reut*", True),
        ("title:(opec AND vien*) source:(news OR ap)", True),
        ("title:(opec AND crude)", False),
        ("title:(opec AND source:reuters)", True),  # the inner field wins
        ("title: opec", True),
        ('"crude oil"', True),
        ('"oil crude"', False),
        ('"vienna crude"', False),  # from the title into the text
        ("crude-oil", True),
        ("oil-rose", True),
        ("crude-rose", False),
        ("u.s.", True),
        ("U.S", True),
        ("us", False),
        ("東京都", True),
        ("京都", True),  # pairs of characters, as everywhere in the service
        ("京都東京", False),
        ("東*", True),
        ("東京都*", True),
        ('"crude oi*"', True),
        ("crude-oi*", True),
        ('"crude o*" "stocks of cru*"', True),
        ('"crude ri*"', False),
        ('"crude oi* "', True),
        ("cru*", True),
        ("ude*", False),
        ("“crude oil”", True),
        ("「crude oil」", True),
        ("title：（opec OR gas）", True),
        ("gas OR crude AND oil", True),
        ("crude OR gas AND coal", True),  # AND binds closer
        ("(crude OR gas) AND coal", False),
        ("crude OR gas coal", True),  # and so does what stands side by side
        ("NOT gas AND crude", True),  # NOT closest
        ("crude NOT gas", True),
        ("crude(oil)NOT(gas)", True),
        ('"crude""oil"', True),
        ("and", False),
        ("crude and oil", False),  # the word and is not there
        ("“and” OR or OR not", False),
    ],
)
def test_what_readers_expect(text: str, expected: bool) -> None:
    assert parse(text).matches(OIL) is expected


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "a word is expected before the end"),
        ("  ", 2, "a word is expected before the end"),
        ("AND a", 0, "a word is expected before AND"),
        ("a AND", 5, "a word is expected after AND"),
        ("a AND OR b", 6, "a word is expected after AND"),
        ("a OR )", 5, "a word is expected after OR"),
        ("NOT", 3, "a word is expected after NOT"),
        ("a ()", 3, "a word is expected after ("),
        ("title:", 6, "a word is expected after title:"),
        ("title:source:a", 6, "a word is expected after title:"),
        ("title:NOT a", 6, "a word is expected after title:"),
        ("a (b OR (c)", 2, "this parenthesis is never closed"),
        ("a (b)) c", 5, "this parenthesis closes nothing"),
        ('a "b c', 2, "this quote is never closed"),
        ('a "', 2, "this quote is never closed"),
        ("a titel:b", 2, "'titel' is not a field; the fields are title and source"),
        ("a :b", 2, "'' is not a field; the fields are title and source"),
        ("at 10:30", 3, "'10' is not a field; the fields are title and source"),
        ("a & b", 2, "a word without letters or digits matches nothing"),
        ("a *", 2, "a word without letters or digits matches nothing"),
        ('a "--" b', 2, "a phrase without letters or digits matches nothing"),
        ("a *b", 2, "a * can only end a word, right after a letter or digit"),
        ("a b*c", 3, "a * can only end a word, right after a letter or digit"),
        ("a b**", 3, "a * can only end a word, right after a letter or digit"),
        ("a U.S.*", 6, "a * can only end a word, right after a letter or digit"),
        ('a "b* c"', 4, "a * can only end a word, right after a letter or digit"),
        ("oil -sport", 4, "to exclude a word, write NOT before it; if - belongs to the word, use quotes"),
        ("oil !sport", 4, "to exclude a word, write NOT before it; if ! belongs to the word, use quotes"),
        ("oil gas|coal", 7, "| means nothing here; if | belongs to the word, use quotes"),
        ("oil te?t", 6, "? means nothing here; if ? belongs to the word, use quotes"),
        ("“oil” roam~2", 10, "~ means nothing here; if ~ belongs to the word, use quotes"),
        ("a " * 500 + "b", 1000, "a rule may have at most 500 words"),
        ("x " + "東" * 501, 2, "a rule may have at most 500 words"),
        ("(" * 60, 50, "parentheses may be nested at most 50 deep"),
        ("a" * 10_001, 10_000, "a rule may have at most 10,000 characters"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(text: str, position: int, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(text)
    assert (caught.value.position, caught.value.message) == (position, message)
    assert str(caught.value) == f"{message} (at character {position + 1})"


def test_a_rule_too_long_once_written_out_is_refused() -> None:
    text = " ".join(f"{'b' * 18}{i:03}" for i in range(450))
    assert len(text) < MAX_CHARACTERS
    with pytest.raises(RuleError, match="written out"):
        parse(text)


def test_an_error_can_be_copied() -> None:
    """As is done on the way from one process to another."""
    error = copy.copy(RuleError(3, "no"))
    assert (error.position, error.message, str(error)) == (3, "no", "no (at character 4)")


def test_the_deepest_rule_can_be_read_written_compared_and_asked() -> None:
    text = "a OR b AND NOT (" * MAX_DEPTH + "c OR d" + ")" * MAX_DEPTH
    rule = parse(text)
    assert str(rule) == text
    assert parse(text) == rule
    assert len({rule, parse(text)}) == 1
    assert len(rule.words()) == 2 * MAX_DEPTH + 2
    assert rule.matches(Subject.of("b", "")) is False  # an even number of times turned round
    assert rule.matches(Subject.of("b", "d")) is True


def test_nested_deeper_without_end_is_an_error_not_a_crash() -> None:
    for opening in ("(", "NOT (", "title:(", "a OR (", "NOT ", "title:"):
        with pytest.raises(RuleError):
            parse(opening * (MAX_CHARACTERS // len(opening)))


def test_the_tree_is_flat_and_says_each_negation_once() -> None:
    a, b, c = (Clause(Word(None, (term,))) for term in "abc")
    assert parse("(a AND b) c") == parse("a (b c)") == parse("((a) (b)) AND ((c))") == Rule(((a, b, c),))
    assert parse("a OR (b OR c)") == parse("((a OR b) OR c)") == Rule(((a,), (b,), (c,)))
    assert parse("NOT (NOT (NOT a))") == parse("NOT a") == Rule(((Clause(a.rule, negated=True),),))
    assert parse("NOT (NOT (a b))") == parse("a b")
    assert parse("NOT (NOT (a OR b)) c") == parse("(a OR b) c")
    assert parse("title:crude-oi*").words() == (Word("title", ("crude", "oi"), prefix=True),)
    assert str(parse("((a b) OR c) NOT (NOT x OR TITLE*)")) == "(a AND b OR c) AND NOT (NOT x OR title*)"
    assert [str(word) for word in parse('a OR NOT (title:b* "c d")').words()] == ["a", "title:b*", '"c d"']


def test_a_prefix_is_made_of_whole_letters() -> None:
    """Decomposed, cafe* would match café and 서우* 서울; vowel signs, which never compose, do continue a word."""
    subject = Subject.of("", "cafe\u0301 서울 हिन्दी")
    found = [text for text in ("caf*", "cafe*", "CAFÉ*", "서*", "서우*", "हिन्द*") if parse(text).matches(subject)]
    assert found == ["caf*", "CAFÉ*", "서*", "हिन्द*"]


def test_a_phrase_ends_with_a_whole_word_though_its_beginning_stands_there() -> None:
    assert parse('"crude oil"').matches(Subject.of("", "oil: crude oils")) is False


def test_any_number_of_parentheses_may_stand_side_by_side() -> None:
    assert len(parse("(a OR b) " * (MAX_DEPTH + 1)).words()) == 2 * MAX_DEPTH + 2


def test_as_many_words_as_allowed_are_allowed() -> None:
    assert len(parse("a " * MAX_WORDS).words()) == MAX_WORDS


def test_a_document_is_read_once_for_a_thousand_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "the quick crude oil market of vienna saw opec ministers argue about barrels, output and quotas " * 11
    rules: list[Rule] = [
        parse(f'("crude oil" OR barrel{i}* OR title:w{i}) AND NOT (sport OR "opec argue" OR source:x{i})')
        for i in range(1000)
    ]
    subject = Subject.of("OPEC meets", text, "reuters")
    monkeypatch.delattr(models.text.rules, "occurrences")  # by which text is read
    assert all(rule.matches(subject) for rule in rules)


def test_a_phrase_made_to_be_slow_is_searched_to_the_end() -> None:
    """Word by word from every place where it might begin, this is forty million steps."""
    subject = Subject.of("", "a b " * 100_000)
    rule = parse(f'"{"a b " * 100}a a" OR "{"a b " * 100}b b"')
    assert rule.matches(subject) is False
