"""Learning to rank: in which order to show what a topic let through, learned from judgements and their grades.

Reading order:

    features.py     what is known of a document beside a query, as a few numbers
    pairs.py        which judged documents belong before which
    svm.py          the weights that order these pairs, by a wide margin
    ranker.py       these parts together: a ranker, its scores held out, and whether it orders better than a score

It decides nothing, and no model depends on it: a ranker is fitted when a ranking is asked for. From outside, use
`features` and `ranker`.
"""
