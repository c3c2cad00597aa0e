"""What every cut of a topic's scores would give, estimated from the documents that were judged.

Reading order:

1. `weighted.py`: judged documents as a sample of the whole stream
2. `tradeoff.py`: for each share of the stream that is left undecided, the two cuts of least error
3. `precision_recall.py`: precision and recall of accepting above each cut, and where both are equal

The modules are pure, and open to all rooms above.
"""
