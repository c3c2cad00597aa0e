"""The documents that are remembered, as people look at them: one of them, with all that was said about it, or those
that a search finds.

    one.py        one document: what was sent, the decisions on it, the judgements of it
    words.py      what is typed into a search box, as an expression of the index
    index.py      the index: a SQLite file that can be deleted and built again
    following.py  keeps the index up to date with the store, in the background
    search.py     searches the index, and the store for what topics decided

From outside: `Documents` and `Search`, as attributes of `Sluice`. Nothing here writes to the store: documents are
remembered in service/flow, decided in service/topics, and judged in service/feedback.
"""
