"""What the benchmarks, the evaluation and the simulation share.

    corpus.py   labelled documents, from a file or generated
    options.py  options of their command lines
    report.py   tables, JSON and pictures
    live.py     real processes of the service on a temporary store, and connections to the API

Nothing here measures anything; the service, the models and the tests of both do without it.
"""
