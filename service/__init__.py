"""The outside world of Sluice: HTTP, Redis, processes."""
