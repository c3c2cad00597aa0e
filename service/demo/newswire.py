"""A newswire: short stories of several themes, whose words change as one chapter gives way to the next.

Everything follows from the seed. At the t-th of `length` stories, a theme with C chapters is in chapter
c = t / length · C. Within OVERLAP of a chapter's end, a growing share of the stories is from the next one already.
"""

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from service.demo.stories import FILLERS, GAPS, THEMES, Chapter

OVERLAP = 0.15  # share of a chapter
SENTENCES = (2, 4)  # fewest and most in a story, besides a filler
THEME_WEIGHTS = {"oil": 3, "grain": 3, "rates": 3, "football": 3}  # of all other themes: 1


class Story(NamedTuple):
    theme: str
    chapter: int
    title: str
    text: str


def newswire(length: int, seed: int) -> Iterator[Story]:
    rng = random.Random(seed)
    themes = list(THEMES)
    weights = [THEME_WEIGHTS.get(theme, 1) for theme in themes]
    for t in range(length):
        theme = rng.choices(themes, weights)[0]
        number = _chapter(len(THEMES[theme]), t / length, rng)
        yield _story(theme, number, THEMES[theme][number], rng)


def _chapter(chapters: int, elapsed: float, rng: random.Random) -> int:
    position = elapsed * chapters
    current, fraction = int(position), position % 1
    is_next = fraction > 1 - OVERLAP and rng.random() < (fraction - 1 + OVERLAP) / OVERLAP
    return min(current + is_next, chapters - 1)


def _story(theme: str, number: int, chapter: Chapter, rng: random.Random) -> Story:
    sentences = rng.sample(chapter.sentences, rng.randint(*SENTENCES))
    sentences.insert(rng.randint(1, len(sentences)), rng.choice(FILLERS))
    return Story(theme, number, _fill(rng.choice(chapter.headlines), rng), _fill(" ".join(sentences), rng))


def _fill(text: str, rng: random.Random) -> str:
    return re.sub(r"{(\w+)}", lambda gap: rng.choice(GAPS[gap[1]]), text)
