"""What a topic tells of itself: the state of its goals, and how well it has done, each figure with an interval.

Reading order:

1. `volume.py`: counts of the stream, and whether a topic has fallen silent or floods its reader
2. `report.py`: the state of each goal, with bounds, in the sentences that users read; `needed.py`: how many judgements
   it still takes
3. `samples.py`: how many relevant documents a stream had of which people saw a part
4. `prequential.py`: precision, recall and the other figures of `/metrics`, from these samples;
   `rankings.py`: those of a ranking; `averages.py`: one figure for many topics
5. `reliability.py`: whether probabilities could be trusted

Another figure is a field of `prequential.Quality`. The modules are pure, and open to all rooms above.
"""
