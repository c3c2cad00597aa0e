"""What several tests use: servers, readers who judge, receivers of webhooks, the slow reference of the learners."""

from pathlib import Path

ROOT = Path(__file__).parents[2]  # of the repository
