"""Topics as their users handle them: created, found, listed, changed, restored, deleted."""

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress

from models.online.model import Model
from service.clock import now_ms
from service.config import Config
from service.errors import BadInput, FieldError, NotFound, TooLarge
from service.schemas import Effect, Group, NewTopic, TopicChange
from service.schemas.flow import Route
from service.store.stream.routes import RouteStore, StoredRoute
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epochs
from service.topics.counts import TopicCounters
from service.topics.decisions.registry import Registry
from service.topics.features import log_features
from service.topics.learning import Learning
from service.topics.published import Base, PublishedModel
from service.topics.settings import TopicSettings, changed_fields, check, effect_of, read_terms, with_audit_history
from service.topics.state import TopicState


class Topics:
    def __init__(
        self,
        store: Store,
        registry: Registry,
        learning: Learning,
        epochs: Epochs,
        counters: TopicCounters,
        routes: RouteStore,
        config: Config,
        pool: Pool,
    ) -> None:
        self._store = store
        self._registry = registry
        self._learning = learning
        self._epochs = epochs
        self._counters = counters
        self._routes = routes
        self._config = config
        self._pool = pool

    async def find(self, topic: str) -> PublishedModel:
        """The topic as it is served; one that another process has just created is loaded."""
        return self._registry.topics.get(topic) or await self._learning.catch_up(topic)

    async def page(self, after: str, limit: int) -> tuple[list[PublishedModel], str | None]:
        """Topics by id, those after the given one, and where the next page begins."""
        ids = await self._store.topics(after, limit + 1)
        page: list[PublishedModel] = []
        for topic in ids[:limit]:
            with suppress(NotFound):  # deleted just now, or not created completely
                page.append(await self.find(topic))
        return page, ids[limit - 1] if ids[limit:] else None

    async def create(self, new: NewTopic) -> PublishedModel:
        check(dict(new))
        topic = new.id or topic_id(new.name)
        self.check_group(topic, new.group)
        await self.check_room_for(topic)
        terms = read_terms(new.terms, self._registry.analysis)
        settings = TopicSettings(**new.model_dump(exclude={"id"}), created_ms=now_ms(), read=terms)
        query = await self._pool.run(log_features, "", settings.query, self._registry.analysis, self._epochs.current)
        await self._learning.create(topic, settings, query)
        return await self.find(topic)

    async def change(self, topic: str, change: TopicChange, if_match: int | None) -> PublishedModel:
        """Applies the fields that are given; a new learner or query refolds the log."""
        fields = changed_fields(change, self._registry.analysis)
        self.check_group(topic, fields.get("group"))
        epoch, decides_differently = self._epochs.current, False

        def edit(state: TopicState) -> tuple[TopicSettings, bytes] | None:
            nonlocal decides_differently
            before = state.settings
            settings = before.model_copy(update=fields)
            if settings == before:
                return None
            decides_differently = effect_of(settings, before) >= Effect.DECISIONS
            settings = with_audit_history(settings, before, self._config.audit_rate)
            if settings.query == before.query:
                return settings, state.resolved.settings.features
            return settings, log_features("", settings.query, self._registry.analysis, epoch)

        await self._learning.edit(topic, edit, if_match)
        model = await self.find(topic)
        if decides_differently:
            await self._counters.reset_window(model)
        return model

    async def restore(self, topic: str, version: int) -> PublishedModel:
        """Serves an earlier version again, as a new one."""
        await self._learning.restore(topic, version)
        model = await self.find(topic)
        await self._counters.reset_window(model)
        return model

    async def put_model(self, topic: str, model: Model, words: Sequence[str]) -> PublishedModel:
        """Serves an imported model; judgements that follow are learned on top of it."""
        await self._learning.publish(topic, Base(model), words, "import")
        return await self.find(topic)

    async def refresh(self, topic: str) -> None:
        """Moves the topic to the current background."""
        epoch, analysis = self._epochs.current, self._registry.analysis
        await self._learning.refresh(topic, lambda settings: log_features("", settings.query, analysis, epoch))

    async def put_routes(self, topic: str, routes: Sequence[Route]) -> list[StoredRoute]:
        model = await self.find(topic)
        stored = await self._routes.put(topic, routes, self._config.webhooks_private)
        (head,) = await self._store.heads([topic])
        if head is None or head.born != model.born:  # deleted meanwhile: another topic of this name must not get them
            await self._routes.forget(topic)
            raise NotFound.topic_gone(topic)
        return stored

    async def delete(self, topic: str, if_match: int | None = None) -> None:
        if if_match is None:
            await self._routes.forget(topic)  # first: if the store then fails, a second try does the rest
        await self._learning.delete(topic, if_match)
        if not (await self._store.heads([topic]))[0]:
            await self._routes.forget(topic)  # including those that were put meanwhile
        self._registry.delete(topic)

    def check_group(self, topic: str, group: Group | None) -> None:
        """Raises `BadInput` if another topic has a group of that name that is not the same."""
        self._registry.groups.check(topic, group)

    async def check_room_for(self, topic: str) -> None:
        """Raises `TooLarge` if a new topic would be one more than the config allows."""
        if await self._store.count_topics() >= self._config.max_topics and topic not in self._registry.topics:
            raise TooLarge(f"There are {self._config.max_topics:,} topics already, which is the limit.")


def topic_id(name: str) -> str:
    """An id made from a name: its letters and digits in ASCII, with dashes between; it may be taken already."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:128].strip("-")
    if not slug:
        raise BadInput("No id can be made from this name; give one.", [FieldError(pointer="/id", detail="Give an id.")])
    return slug
