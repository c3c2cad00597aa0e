"""The mathematics of Sluice: from text to features, from judgements to models, from models to scores.

Pure: no I/O, no clock, no logging; randomness comes from a seed. Nothing here knows of the service. Each room imports
only from those above it in this list, which is the reading order:

1. `core`: the form of documents and models, measures, bounds
2. `text`: from a text to counted features; near-duplicates; rules
3. `learners`: Widrow-Hoff, EG, Winnow, Perceptron, Rocchio and PA-I, one example at a time
4. `goals`: thresholds, calibration, and what can be promised of them
5. `bank`: all models of a process, scored together
6. `methods`: SVM, Centroid, naive Bayes, logistic regression and boosting, which learn from all documents at once
7. `online`: a topic's model, learned from its judgements as they come; committees
8. `batch`: a topic fitted to all its judgements at once, and compared
9. `ranking`: in which order to show what a topic let through

`learners`, `goals`, `bank` and `methods` do not know each other. A learner is a module, not a class; every model ends
as a linear form (core/vectors.py), which is all that the bank knows of it. State is values and arrays: the same
judgements in the same order give the same model, to the last bit.
"""
