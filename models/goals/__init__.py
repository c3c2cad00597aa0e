"""Goals: where a topic cuts its scores, what it can promise, and whether it has kept that.

All of it rests on scores that the model did not learn from, and on knowing how each document came to be judged: what
was shown or drawn for audit is a sample, what users brought along or found is not.

Reading order:

1. `sigmoid.py`: a curve from scores to probabilities; `prevalence.py`: how common a topic is, from such a curve
2. `objectives.py`: what a cut may maximise; `thresholds.py`: the best cut by that, and the band of a topic that
   promises nothing
3. `evidence.py`: what judged documents show, and how much of it a promise needs
4. `promises.py`: the band for a goal, so that what is promised holds; `tracking.py`: cuts steered by what was
   delivered; `spending.py`: how much is left undecided for the sake of recall; `restrictive.py`:
   the two cuts of least error within a loss, or of least loss within an error
5. `ledger.py`: how each document came to be judged; it makes the window that evidence is collected from
6. `drift.py`: whether a filter has become worse, so that older judgements no longer count
7. `audit.py`: which rejected documents are drawn at random for people to judge
8. `calibration.py`: from a score to a probability; `one_of.py`: which of several topics accepts, by these
9. `reporting`, a package: the state of each goal and the figures of `/metrics`
10. `curves`, a package: what other cuts would give, as error against loss and as precision against recall

Another measure to maximise is a class in `objectives.py`; another rule for cutting, a function in `thresholds.py` over
`all_cuts`; another target of a goal is a field of
`Targets`, its part of `promises.choose`, and its part of `reporting/report.py`. The modules are pure, and open to all
rooms above. `Evidence` is stored with each model.
"""
