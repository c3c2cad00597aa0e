"""Whether Sluice keeps its promises: `scripts/simulate --help` lists the readers that can be simulated.

A topic may have a goal, such as a precision of 90 %, and says when it is met. Here labelled documents stream past
topics with goals, simulated readers judge what they are shown, and at the end of the stream each topic is asked what it
claims. The documents that follow show whether that was right: whether precision holds, whether the interval of recall
covers it, how much was abstained on.

Reading order:

    topic.py             one topic with a goal on a stream, in this process
    attainment.py        what was promised, compared with what came
    hindsight.py         what an SVM with all labels could reach, cut in hindsight
    plant_duplicates.py  near-duplicates planted in a corpus, and how to count them once
    remote.py            the same through a running service (`--http`)
    report.py            tables and JSON
    __main__.py          the command line

Readers, streams and topics are those of scripts/loop, corpora and tables those of scripts/common. The results are in
docs/promises.md.
"""
