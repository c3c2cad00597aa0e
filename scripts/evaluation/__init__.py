"""How well Sluice decides: `scripts/evaluate --help` lists what can be measured.

Each command reads a labelled corpus, trains topics, and compares their decisions on other documents with the labels.
Nothing is chosen on test documents: thresholds come from what was judged, and `--holdout` measures on the last quarter
of the training documents, for those who want to change a default.

Reading order:

    effectiveness.py   what is measured of a model, on the test documents
    peers.py           `online --peers`: SVMs on the same stream
    online.py          `online`: one pass in date order, from a query and a few relevant documents
    duplicates.py      `duplicates`: planted near-duplicates, and whether they are found and decided alike
    batch.py           `batch`: all training documents at once, in several orders, as in the papers
    joint.py           `batch`, for methods that learn from all topics at once, too
    duels.py           `batch --duels`: learners against Rocchio, topic by topic
    pairs.py           one group of documents against another, as small matrices
    committees.py      the parts that members of a committee learn from, and abstention by distance
    abstain.py         `abstain`: error against loss on pairs, for restrictive classifiers and committees
    abstain_report.py  its tables, JSON and picture
    published.py       the rows of `batch`, and figures of papers and prototypes (figures/*.json) to print beside ours
    report.py          the tables of the other commands, JSON and picture
    __main__.py        the command line

queries/*.json are queries for the topics of two corpora. A topic on a stream is that of scripts/loop. Nothing in the
service or the models imports this package. The results are in docs/quality.md.
"""
