"""The language of `accept_if` and `reject_if`: which documents a rule decides in place of the model.

    rule        = conjunction { "OR" conjunction } ;
    conjunction = negation { [ "AND" ] negation } ;               a b  means  a AND b
    negation    = { "NOT" } atom ;                                lower-case and, or, not are words
    atom        = [ field ] ( word | phrase | "(" rule ")" ) ;    title:(a OR b)  means  title:a OR title:b
    field       = ( "title" | "source" ) ":" ;                    none: in the title or in the text; the inner one wins
    phrase      = '"' { any character but " or * } [ "*" ] '"' ;  curly and wide forms of " ( ) : * are read as these
    word        = character { character } [ "*" ] ;               none of them space " ( ) : * ? ~ ^ | \\ [ ] { }

    sport AND NOT sponsor*          "crude oil" OR title:opec          source:reuters* NOT (tennis OR golf)

Words are read as documents are (analysis.py, without stemming and stop words): case does not matter, and what reads as
several terms is a phrase: U.S. is "u s", 東京都 is "東京 京都". A phrase matches within one field; a star may end its
last word. Words are compared composed (NFC), else cafe* would match café, which cafe does not, and 서우* 서울.

Syntax of other search languages is refused rather than misread: -word and !word (they would mean the opposite), fuzzy~,
boost^2, a|b. Left out on purpose: NEAR (a phrase or AND is nearly always meant, and there is no agreement on order and
distance), regular expressions (they match characters where all else here matches terms, and a bad one takes for ever),
stars at the front of a word or inside (no sorted list finds them), weights (that is the model's task).

A `Subject` is a document read once for all rules. A word costs a set lookup, a prefix a bisection of a sorted list, a
phrase, if all its words occur at all, a search for " crude oil " in the terms joined by spaces: terms contain none.
Lists of positions would be slow on texts made to be slow ("a b a b … a a" in a megabyte of a b).
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import NamedTuple

from models.text.analysis import Analysis, occurrences
from models.text.tokens import MAX_POINTS
from models.text.unicode import SEPARATOR, fold, kind

Alternatives = tuple[tuple["Clause", ...], ...]
FIELDS = ("title", "source")
MAX_CHARACTERS = 10_000  # of the text, and of the canonical text
MAX_WORDS = 500  # counted as terms, because it is terms that take time
MAX_DEPTH = 50  # of parentheses; the parser and the rules recurse, a few frames for each


class RuleError(ValueError):
    """What is wrong with a rule, and at which character, from 0 to the length of the text."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(position, message)
        self.position, self.message = position, message

    def __str__(self) -> str:
        return f"{self.message} (at character {self.position + 1})"  # people count from 1


class Zone(NamedTuple):
    """A text as rules query it. `line` has two spaces where no phrase may match across."""

    terms: frozenset[str]
    ordered: Sequence[str]
    line: str

    @classmethod
    def of(cls, *parts: Sequence[str]) -> "Zone":
        terms = frozenset(chain(*parts))
        return cls(terms, sorted(terms), f" {'  '.join(map(' '.join, parts))} ")

    def has_prefix(self, prefix: str) -> bool:
        first = bisect_left(self.ordered, prefix)
        return first < len(self.ordered) and self.ordered[first].startswith(prefix)


class Subject(NamedTuple):
    """A document, ready for any number of rules."""

    zones: Mapping[str | None, Zone]  # None: title or text

    @classmethod
    def of(cls, title: str, text: str, source: str = "") -> "Subject":
        first, second, third = map(_terms, (title, text, source))
        return cls({None: Zone.of(first, second), "title": Zone.of(first), "source": Zone.of(third)})


@dataclass(frozen=True, slots=True)
class Word:
    """Terms that must occur one after the other; with `prefix`, the last is the beginning of one."""

    field: str | None
    terms: tuple[str, ...]
    prefix: bool = False

    def matches(self, subject: Subject) -> bool:
        zone = subject.zones[self.field]
        whole = self.terms[:-1] if self.prefix else self.terms
        if not zone.terms.issuperset(whole) or (self.prefix and not zone.has_prefix(self.terms[-1])):
            return False
        return len(self.terms) == 1 or f" {' '.join(self.terms)}{'' if self.prefix else ' '}" in zone.line

    def __str__(self) -> str:
        field, star = f"{self.field}:" if self.field else "", "*" if self.prefix else ""
        text = " ".join(self.terms) + star
        return f'{field}"{text}"' if len(self.terms) > 1 else field + text


class Clause(NamedTuple):
    rule: "Word | Rule"
    negated: bool = False

    def __str__(self) -> str:
        text = str(self.rule) if isinstance(self.rule, Word) else f"({self.rule})"
        return f"NOT {text}" if self.negated else text


@dataclass(frozen=True, slots=True)
class Rule:
    """Matches if all clauses of an alternative do. `parse` leaves out all parentheses that are not needed."""

    alternatives: Alternatives

    def matches(self, subject: Subject) -> bool:
        for clauses in self.alternatives:  # any() and all() would do it in a line, and take three times as long
            for clause in clauses:
                if clause.rule.matches(subject) == clause.negated:
                    break
            else:
                return True
        return False

    def words(self) -> tuple[Word, ...]:
        inner = (clause.rule for clause in chain(*self.alternatives))
        return tuple(chain.from_iterable((rule,) if isinstance(rule, Word) else rule.words() for rule in inner))

    def __str__(self) -> str:
        return " OR ".join([" AND ".join(map(str, clauses)) for clauses in self.alternatives])


def parse(text: str) -> Rule:
    """The rule that the text expresses. Its `str` is the canonical text, which parses to the same rule."""
    if len(text) > MAX_CHARACTERS:
        raise RuleError(MAX_CHARACTERS, f"a rule may have at most {MAX_CHARACTERS:,} characters")
    parser = _Parser(text)
    rule = Rule(parser.rule(None))
    if extra := parser.take("close"):
        raise RuleError(extra.start(), "this parenthesis closes nothing")
    if len(str(rule)) > MAX_CHARACTERS:  # ﷺ alone is four words
        raise RuleError(0, f"written out, this rule has more than {MAX_CHARACTERS:,} characters")
    return rule


_PLAIN = str.maketrans("“”„«»＂（）：＊", '"' * 6 + "():*")  # one for one, so that positions stay
_TOKEN = re.compile(
    r'(?P<field>[^\s"():]*:)|(?P<phrase>"[^"]*"?)|(?P<open>\()|(?P<close>\))|(?P<end>\Z)'
    r'|(?:(?P<AND>AND)|(?P<OR>OR)|(?P<NOT>NOT))(?![^\s"()])|(?P<word>[^\s"():]+)'
)
_FOREIGN = re.compile(r"^[-!]|[?~^|\\\[\]{}]")


class _Parser:
    """Recursive descent, a method for each line of the grammar; `field` is that of the enclosing parentheses."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.finditer(text.translate(_PLAIN))
        self.token = next(self.tokens)
        self.before, self.depth, self.words = "", 0, 0

    def take(self, *kinds: str) -> re.Match[str] | None:
        if self.token.lastgroup not in kinds:
            return None
        taken, self.before = self.token, self.token[0]
        self.token = next(self.tokens)
        return taken

    def rule(self, field: str | None) -> Alternatives:
        alternatives = self.conjunction(field)
        while self.take("OR"):
            alternatives += self.conjunction(field)
        return alternatives

    def conjunction(self, field: str | None) -> Alternatives:
        operands = [self.negation(field)]
        while self.take("AND") or self.token.lastgroup in ("NOT", "field", "word", "phrase", "open"):
            operands.append(self.negation(field))
        if len(operands) == 1:
            return operands[0]
        clauses = chain.from_iterable(o[0] if len(o) == 1 else (Clause(Rule(o)),) for o in operands)
        return (tuple(clauses),)

    def negation(self, field: str | None) -> Alternatives:
        negative = False
        while self.take("NOT"):
            negative = not negative
        alternatives = self.atom(field)
        if not negative:
            return alternatives
        match alternatives:  # of a single clause the NOT is moved to the word, or cancels a NOT
            case ((Clause(Word() as word, negated),),):
                return ((Clause(word, not negated),),)
            case ((Clause(Rule() as rule, True),),):
                return rule.alternatives
        return ((Clause(Rule(alternatives), True),),)

    def atom(self, field: str | None) -> Alternatives:
        if named := self.take("field"):
            field = named[0][:-1]
            if field not in FIELDS:
                raise RuleError(named.start(), f"'{field[:40]}' is not a field; the fields are {' and '.join(FIELDS)}")
        if opened := self.take("open"):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise RuleError(opened.start(), f"parentheses may be nested at most {MAX_DEPTH} deep")
            alternatives = self.rule(field)
            if not self.take("close"):
                raise RuleError(opened.start(), "this parenthesis is never closed")
            self.depth -= 1
            return alternatives
        if token := self.take("word", "phrase"):
            return ((Clause(self.word(field, token)),),)
        where = f"after {self.before}" if self.before else f"before {self.token[0] or 'the end'}"
        raise RuleError(self.token.start(), f"a word is expected {where}")

    def word(self, field: str | None, token: re.Match[str]) -> Word:
        text, start = token[0], token.start()
        if token["phrase"]:
            if len(text) == 1 or text[-1] != '"':
                raise RuleError(start, "this quote is never closed")
            text, start = text[1:-1].rstrip(), start + 1
        elif foreign := _FOREIGN.search(text):
            hint = (
                "to exclude a word, write NOT before it" if foreign[0] in "-!" else f"{foreign[0]} means nothing here"
            )
            raise RuleError(start + foreign.start(), f"{hint}; if {foreign[0]} belongs to the word, use quotes")
        stem = text.removesuffix("*")
        terms = tuple(_terms(stem))
        if not terms:
            raise RuleError(token.start(), f"a {token.lastgroup} without letters or digits matches nothing")
        if "*" in stem or (stem != text and kind("".join(map(fold, stem))[-1]) == SEPARATOR):
            raise RuleError(start + text.index("*"), "a * can only end a word, right after a letter or digit")
        self.words += len(terms)
        if self.words > MAX_WORDS:
            raise RuleError(token.start(), f"a rule may have at most {MAX_WORDS} words")
        return Word(field, terms, stem != text)


def _terms(zone: str) -> list[str]:
    """The terms of a zone in order, composed, as `occurrences` gives them. ASCII has a way twenty times as fast."""
    terms: list[str] = []
    for ascii_only, chunks in groupby(zone.split(), str.isascii):
        run = " ".join(chunks)
        if ascii_only:
            terms += [term[:MAX_POINTS] for term in re.findall("[a-z0-9]+", run.lower())]
        else:
            terms += [unicodedata.normalize("NFC", term.canonical) for term, _ in occurrences("", run, Analysis())]
    return terms
