"""How fast Sluice is, beside its peers: `scripts/bench --help` lists what can be measured.

A module is named after its command. Its head says what each figure is, its `Sizes` how much to measure, and its
`measure` returns figures for the JSON. Contestants take turns, so that a busy minute affects all of them; on a busy
machine CPU time and ratios are more reliable than wall-clock time.

Reading order:

    contest.py   contestants in processes of their own, on one core, that take turns
    topics.py    any number of topics, such as a learner might produce
    decide.py    raw text to decisions: Sluice, Vowpal Wabbit, scikit-learn; memory; one document alone
    peers.py     Vowpal Wabbit and scikit-learn, for decide.py
    learn.py     one judgement learned: Sluice, River, scikit-learn; a whole log folded again
    start.py     a process that finds ten thousand topics in the store
    endure.py    what it costs that every acknowledged judgement is on disk
    wait.py      how long clients wait: for a frozen store, beside large requests, for other processes
    flow.py      documents from end to end, over HTTP and from a stream
    ceiling.py   what the framework can do with lines at best, for flow.py
    memory.py    memory over one request of a million lines, for flow.py
    retrain.py   retraining on a live service, and how long others wait meanwhile
    boost.py     boosting on one core, by two processes, and by two workers of a Dask cluster: the same hypotheses
    figures/     what the figures should be, tables and pictures
    __main__.py  the command line

Corpora and processes are those of scripts/common. The results are in docs/benchmarks.md.
"""
