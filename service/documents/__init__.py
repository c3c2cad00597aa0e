"""The documents that are remembered, as people look at them: one of them, with all that was said about it.

    one.py    one document: what was sent, the decisions on it, the judgements of it

From outside: `Documents`, as an attribute of `Sluice`. It reads, and writes nothing: documents are remembered in
service/flow, decided in service/topics, and judged in service/feedback.
"""
