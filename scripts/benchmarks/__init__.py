"""How fast Sluice is, beside its peers. `scripts/bench --help` lists what can be measured.

corpus    real text by path, or generated
contest   contenders in processes of their own, on one core, taking turns
topics    topics such as a learner might make, as many as wanted
deciding  raw text to decisions: Sluice, Vowpal Wabbit, scikit-learn; memory; one document alone
judging   one judgement learned: Sluice, River, scikit-learn; a whole log folded again
starting  a process that finds ten thousand topics in the store
boosting  one core, two processes, two workers of a Dask cluster: the same hypotheses, sooner
flowing   the whole way of a document, through HTTP and by a stream
ceiling   what the framework can do with lines at best
lasting   memory over one request of a million lines
enduring  what it costs that an acknowledged judgement is on disk
waiting   how long anybody waits: for a frozen store, beside large requests, for other processes, in a long log
report    JSON, tables, and what was to be reached
plots     the same as pictures
"""
