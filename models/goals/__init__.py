"""Goals: where a topic cuts its scores, what it can promise, and whether it has kept that.

All of it rests on scores that the model did not learn from, and on knowing how each document came to be judged: what
was shown or drawn for audit is a sample, what users brought along or found is not.

Reading order. Choosing thresholds:

1. `sigmoid.py`: a curve from scores to probabilities; `prevalence.py`: how common a topic is, from such a curve
2. `thresholds.py`: the band of a topic without a goal, and cuts that are best by a measure
3. `evidence.py`: what judged documents show, and how much of it a promise needs
4. `promises.py`: the band for a goal, so that what is promised holds; `tracking.py`: cuts steered by what was delivered
5. `ledger.py`: how each document came to be judged; it makes the window that evidence is collected from
6. `drift.py`: whether a filter has become worse, so that older judgements no longer count
7. `audit.py`: which rejected documents are drawn at random for people to judge
8. `calibration.py`: from a score to a probability

Reporting:

9. `volume.py`: counts of the stream, and whether a topic has fallen silent or floods its reader
10. `report.py`: the state of each goal, with bounds, in the sentences that users read; `needed.py`: how many judgements
    it still takes
11. `samples.py`: how many relevant documents a stream had of which people saw a part
12. `prequential.py`: precision, recall and the other figures of `/metrics`, from these samples, and `rankings.py`,
    those of a ranking; `averages.py`: one figure for many topics
13. `curves`, a package: what other cuts would give, as error against loss and as precision against recall
14. `reliability.py`: whether probabilities could be trusted

Another rule for cutting is a function in `thresholds.py` over `all_cuts`; another target of a goal is a field of
`Targets`, its part of `promises.choose`, and its part of `report.report`; another figure is a field of
`prequential.Quality`. The modules are pure, and open to all rooms above. `Evidence` is stored with each model.
"""
