"""Online training: from a topic's query and its judgements, in order, to the model that is served.

The model is a function of the topic's settings and its log alone: learning one by one, stopping and resuming, and
replaying the whole log give the same model, bit for bit. Several learners may run on a topic; the pocket, or a vote,
decides which of their vectors are served, and models/goals chooses the thresholds.

Reading order:

    model.py                what goes in and comes out: Spec, Example, Model
    registry.py             learners by name, and their parameters from JSON
    run.py                  one learner's run on one topic, with the step of each judgement
    refitted.py             a batch method's run, fitted again every few judgements: a member of a committee
    pocket.py               which of all vectors is served
    pins.py                 terms that a user pins or bans
    truncation.py           only the strongest weights are served
    features.py             a topic's features: slots, pinned and banned terms, truncation
    judged.py               a topic's judged documents, by slot and as evidence
    scored.py               a vector with its scores of judged and unjudged documents, and its own cut
    committee.py            several classifiers of one topic: parts, votes, turning points
    committee_estimates.py  the loss and error of a committee, estimated before it is built
    committee_run.py        a committee on one topic
    trainer.py              puts it all together: `Trainer`, and `fold` over a whole log

From outside, use `Trainer` and `fold`, the values of model.py, `PinnedTerms`, the values of a committee, and the
registry; a new learner is registered there (see models/learners). The other modules are the trainer's own.
"""
