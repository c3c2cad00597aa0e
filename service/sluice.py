"""The service as one object, which wires its parts together.

* topics: a topic, from its log to decisions
* flow: documents in, decisions out
* documents: those that are remembered, as people look at them
* feedback: judgements, review, goals, metrics, previews
* archive: a topic as a file
* jobs: work in the background
* access: who may call
* sources: documents fetched from elsewhere
"""

from typing import Any

from service.access.keys import Keys
from service.archive.transfer import Transfer
from service.config import Config
from service.documents.one import Documents
from service.documents.search import Search
from service.feedback.goal_cost import GoalCosts
from service.feedback.goals import Goals
from service.feedback.judge import Judge
from service.feedback.known import Known
from service.feedback.newest import Newest
from service.feedback.preview import Previews
from service.feedback.review import Review
from service.flow.classify import Classifier
from service.flow.ranking import Ranking
from service.flow.subscribers import Subscribers
from service.jobs.jobs import Jobs
from service.schemas.jobs import Retrain
from service.sources.sources import Sources
from service.store.topics import Store
from service.tasks import BackgroundTasks, Pool
from service.topics.background import Epochs
from service.topics.counts import TopicCounters
from service.topics.crud import Topics
from service.topics.decisions.registry import Registry
from service.topics.features import analysis_of
from service.topics.learning import Learning
from service.topics.published import Recipe
from service.topics.sync import Sync
from service.topics.warm_up import warm_up

THREADS = 8


class Sluice:
    def __init__(self, config: Config, store: Store) -> None:
        self.config = config
        self.store = store
        self.pool = pool = Pool(THREADS, "sluice")
        self._background = BackgroundTasks()

        self.epochs = Epochs(store, config.epoch_s)
        self.registry = Registry(analysis_of(config))
        self.learning = Learning(store, self.epochs, config, pool, self.registry.put)
        self.sync = Sync(store, self.registry, self.learning, self.epochs, config.sweep_s)
        self.counters = TopicCounters(store, self.registry, config.review_kept)
        self.routes = store.routes
        self.topics = Topics(store, self.registry, self.learning, self.epochs, self.counters, self.routes, config, pool)

        self.inbox = store.inbox
        self.outbox = store.outbox
        self.classifier = Classifier(
            store, self.topics, self.registry, self.epochs, self.counters, config, pool, self._background
        )
        self.ranking = Ranking(store, self.registry, self.learning, self.epochs, config.served_weights, pool)
        self.subscribers = Subscribers(self.outbox, self.registry.topics, config.max_listeners)

        self.documents = Documents(
            store, self.topics, self.registry, self.learning, self.epochs, self.classifier.signatures, pool
        )
        self.search = Search(store, self.topics, config.search or config.data / "search", pool)

        self.goals = Goals(store, self.counters, self.registry, self.classifier.signatures, config)
        self.judge = Judge(
            store,
            self.topics,
            self.registry,
            self.learning,
            self.epochs,
            self.goals,
            config,
            pool,
            self.refit,
            self._learned,
        )
        self.review = Review(store, self.registry, self.learning, self.epochs, self.goals, config)
        self.known = Known(store, self.learning, self.epochs, self.registry.analysis, config)
        self.previews = Previews(
            store, self.registry, self.learning, self.epochs, self.counters, config.served_weights, pool
        )

        self.newest = Newest(store, self.epochs, self.registry.analysis, config.served_weights, pool)
        self.goal_costs = GoalCosts(self.previews)
        self.transfer = Transfer(store, self.topics, self.learning, self.epochs, self.counters, config, pool)
        self.jobs = Jobs(store.jobs, config)
        self.keys = Keys(store.api_keys, config.admin_key) if config.access == "keys" else None
        self.sources = Sources(store, config)

    async def start(self) -> None:
        """Starts the background tasks; `sync.ready` is set when all topics have been loaded and are served."""
        await self.pool.run(warm_up, self.registry.analysis, self.epochs.current, self.config.served_weights)
        self._background.start(self.sync.listen())
        self._background.start(self.sync.sweep())
        self._background.start(self.subscribers.run())
        self._background.start(self.classifier.signatures.catch_up())
        if self.keys is not None:
            self._background.start(_print_first(self.keys))

    def start_indexing(self) -> None:
        """Keeps the search index up to date, in a process that answers searches."""
        self._background.start(self.search.follower.run())

    async def stop(self) -> None:
        await self._background.stop()
        self.pool.close()
        await self.store.close()

    def _learned(self, topic: str) -> None:
        """Looks whether the topic's goal has changed its state, after the request is answered."""
        self._background.start(self.goals.announce_after(topic))

    async def refit(self, topic: str, recipe: Recipe) -> None:
        """Submits a retraining by the same method, and with the same other topics, unless one is waiting."""
        fields: dict[str, Any] = {"method": recipe.method, "params": recipe.params, "publish": "always"}
        if recipe.topics:
            fields |= {"topics": list(recipe.topics), "publish_to": [topic]}
        request = Retrain.model_validate({"kind": "retrain", "topics": [topic], **fields})
        await self.jobs.submit_unless_waiting(request)


async def _print_first(keys: Keys) -> None:
    """Shows the first key to the person who starts the service, and to nobody else: it goes to no log."""
    if key := await keys.issue_first():
        print(f"The first key, with every scope; it is not shown again:\n{key}", flush=True)
