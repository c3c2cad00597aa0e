"""How well Sluice decides: `scripts/evaluate --help` lists what can be measured.

    corpus     documents with their topics, by path; which topics can be measured; their queries
    stream     a corpus as the service would meet it: bags, running frequencies, epochs
    online     one pass in date order, from a query and a few relevant documents
    batch      all training documents at once, several orders; jointly: all topics at once, too
    pairs      one group against another, as small matrices
    abstain    error against loss on pairs: restrictive classifiers, committees; abstention shows it
    committees the paper's parts of a complete list, and abstention by distance
    published  what the papers and our first experiments reached
    report     tables, JSON and the curve

Nothing is chosen on test documents: thresholds come from what was judged, and `--holdout` measures on the last quarter
of the training documents for whoever wants to change a default.
"""
