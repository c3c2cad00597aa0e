"""What all other rooms of the models share: the form of documents and models, measures, bounds, and small helpers.

Reading order:

1. `vectors.py`: `Bag`, `Sparse` and `Linear`: a counted document, the same seen through a view, and every model
2. `views.py`: how counts become the values that a model multiplies
3. `measures.py`: the quality of rankings and decisions
4. `intervals.py`: how far to trust a share that was observed
5. `names.py`: what views, learners, methods, origins and goal states are called; it imports nothing
6. `kernel.py`: numba's decorator, typed
7. `arrays.py`: growing an array, counting bits, checking parameters
8. `latent.py`: the columns of a semantic projection, as features
9. `table.py`: from a feature to its row, where rows belong to features

All of it is open to everybody. `names.py` must stay free of numpy and numba: schemas and the command line import it.
The order of `VIEWS` and `ORIGINS` is that of the codes in arrays and kernels.
"""
