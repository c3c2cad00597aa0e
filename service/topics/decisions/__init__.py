"""Deciding: the topics that this process serves, and what they make of documents. No Redis writes, no learning.

Reading order:

    registry.py   the topics that this process serves, and the bank that scores documents for all of them
    rules.py      a user's rules, which overrule the model
    groups.py     topics of which one may accept, decided together
    deciding.py   documents in, verdicts out
    repeats.py    documents that repeat another are decided as that one is
    explain.py    why a document was decided as it was, and what would have changed it
    order.py      in which order to show what was let through, where that is learned
    results.py    what is decided about each document, as values; each caller writes them in its own form

Readers take a snapshot of the bank and never wait. From outside, use `Registry` (read it; learning and sync put topics
into it), `classify` and the values of results.py; flow/classify.py takes the steps one by one, because it talks to the
store between them.
"""
