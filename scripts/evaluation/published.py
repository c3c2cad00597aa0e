"""Figures to stand beside ours.

`FIRST_*` are those of the throwaway prototypes with which the defaults were found; the papers are

    Lewis 96    Lewis, Schapire, Callan & Papka, "Training algorithms for linear text classifiers", SIGIR 1996
    Dagan 97    Dagan, Karov & Roth, "Mistake-driven learning in text categorization", EMNLP 1997
"""

from collections.abc import Mapping

# Reuters, date order, 59 topics, query and 3 relevant documents: AP (F1), by feedback and learner, then by judgements
FIRST_ONLINE: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("all", "wh"): {"10": ".69 (.47)", "100": ".70 (.53)", "500": ".73 (.64)", "end": ".806 (.739)"},
    ("realistic", "wh"): {"10": ".69 (.48)", "100": ".75 (.68)", "500": ".80 (.74)", "end": ".800 (.738)"},
    ("realistic", "eg"): {"10": ".66", "100": ".68", "500": ".71", "end": ".699"},
    ("realistic", "winnow"): {"10": ".49", "100": ".58", "500": ".72", "end": ".722"},
    ("realistic", "rocchio"): {"10": ".66", "100": ".70", "500": ".73"},
    ("realistic", "pa"): {"10": ".67", "100": ".74", "500": ".77"},
}

# AP without and with a pocket at the end of that stream, realistic feedback
FIRST_POCKET: Mapping[str, str] = {
    "wh": ".800 → .800",
    "wh last": ".790 → .794",
    "eg": ".681 → .727",
    "winnow": ".722 → .734",
}
