"""The bank: the models of all topics of a process, inverted, so that a document is scored against all of them at once.

Every model is a linear form (core/vectors.py); a form in the bank is a *column*, and a committee has several. The bank
returns scores and does not interpret them: each topic has a payload that it keeps without reading it.

Reading order, from the outside in:

1. `bank.py`: topics in and out; immutable segments, and how they are merged
2. `snapshot.py`: what readers hold; scores of chosen topics, and hits among all
3. `segment.py`: a few thousand topics, an index for each view (and projection)
4. `index.py`: from a feature to every column that weighs it, as postings or as a dense row
5. `seen.py`: documents as the values that models multiply
6. `scan.py`: the kernels that add it all up

From outside use `Bank`, `BankEntry`, `IndexedTopic` and `Snapshot`. Scores must not depend, to the last bit, on what
else is in the bank: a change of `index.py` or `scan.py` must keep each column's sum in ascending order of features.
"""
