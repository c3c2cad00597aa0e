"""The words of the newswire, from stories.json: themes, each in chapters that follow one another.

    gaps      what may stand for {country}, {city}, … in a text
    fillers   sentences that any story may have; they are about no theme
    themes    for each theme its chapters, in order; for each chapter its headlines and its sentences

Every theme has words that last (a refinery is a refinery), words of its chapter, and words that it shares with others:
sunflowers give oil, too, and rivers have banks.
"""

import json
from importlib.resources import files
from typing import NamedTuple


class Chapter(NamedTuple):
    headlines: list[str]
    sentences: list[str]


_stories = json.loads((files(__package__) / "stories.json").read_text(encoding="utf-8"))

GAPS: dict[str, list[str]] = _stories["gaps"]
FILLERS: list[str] = _stories["fillers"]
THEMES: dict[str, list[Chapter]] = {
    theme: [Chapter(**chapter) for chapter in chapters] for theme, chapters in _stories["themes"].items()
}
