"""A newswire: short stories without end, of several themes, whose words change as one chapter gives way to the next.

Everything follows from the seed. Where a wire of `length` stories stands at its t-th, a theme with C chapters is at
chapter c = t / length · C; near the border the next one has begun for some stories already, with the fraction of the
way that has been gone within OVERLAP.
"""

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from service.demo.stories import FILLERS, GAPS, THEMES, Chapter

OVERLAP = 0.15  # of a chapter: so early the first stories of the next one come
SENTENCES = (2, 4)
SHARES = {"oil": 3, "grain": 3, "rates": 3, "football": 3}  # the others once


class Story(NamedTuple):
    theme: str
    chapter: int
    title: str
    text: str


def newswire(length: int, seed: int) -> Iterator[Story]:
    chance = random.Random(seed)
    themes = list(THEMES)
    shares = [SHARES.get(theme, 1) for theme in themes]
    for t in range(length):
        theme = chance.choices(themes, shares)[0]
        number = _chapter(len(THEMES[theme]), t / length, chance)
        yield _story(theme, number, THEMES[theme][number], chance)


def _chapter(chapters: int, gone: float, chance: random.Random) -> int:
    position = gone * chapters
    current, part = int(position), position % 1
    begun = part > 1 - OVERLAP and chance.random() < (part - 1 + OVERLAP) / OVERLAP
    return min(current + begun, chapters - 1)


def _story(theme: str, number: int, chapter: Chapter, chance: random.Random) -> Story:
    told = chance.sample(chapter.sentences, chance.randint(*SENTENCES))
    told.insert(chance.randint(1, len(told)), chance.choice(FILLERS))
    return Story(theme, number, _filled(chance.choice(chapter.headlines), chance), _filled(" ".join(told), chance))


def _filled(text: str, chance: random.Random) -> str:
    return re.sub(r"{(\w+)}", lambda gap: chance.choice(GAPS[gap[1]]), text)
