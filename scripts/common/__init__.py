"""What the benchmarks, the evaluation and the simulation share."""
