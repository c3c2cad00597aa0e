"""Boosting on several processors: the crews for models/methods/farm.py.

It splits the terms among the workers of a crew, and each round asks all of them for their best candidates. What a crew
is lies here, because the models know neither processes nor networks:

* `local.py`: processes of this machine, over pipes.
* `dask.py`: the workers of a Dask cluster (needs the extra `dask`).

Both give the same model as one process, bit for bit. A worker that dies ends the fit with `WorkerDied`: what it knew is
lost, and nothing is written before the end, so the fit can simply be started again.

Jobs use them (service/jobs/crews.py); as a library they are in docs/boosting.md.
"""
