"""Whether Sluice keeps its promises: labelled streams, simulated readers, and goals. `scripts/simulate --help`.

planting    near-duplicates put into a corpus
reader      how judgements come: all or some, at once or late, right or wrong, of one mind or not
topic       one topic with a goal on a stream
attainment  what was promised against what came
live        the same through a running service
report      tables and JSON
"""
