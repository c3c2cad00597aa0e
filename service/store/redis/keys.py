"""The names of all keys, and the types of what they hold. Each family of keys has one module that reads and writes it.

topics.py, the topic itself:

    sluice:topics                  zset     ids of all topics, in order of name; rebuilt from the logs when lost
    sluice:{ID}:topic              hash     born, seq, floor: the head of the log; origin: the file it came from, if any

logs.py, its log:

    sluice:{ID}:log                stream   events numbered by seq (see events.py)
    sluice:{ID}:judged             hash     document -> label in force; what makes appending idempotent

versions.py, its models:

    sluice:{ID}:model              hash     version, blob, digest, born: the model that is served
    sluice:{ID}:versions           stream   a record for each published version, bounded
    sluice:changes                 channel  "ID BORN VERSION" for each published model; version 0 is a deleted topic

counts.py, how the stream was decided:

    sluice:{ID}:tally              hash     counts of decisions, in total and lately (see topics/counts.py)
    sluice:{stream}:passed         string   how many documents have been sent to all topics
    sluice:{stream}:decided        hash     documents sent to named topics; decisions to accept, abstain: ever
    sluice:{stream}:goals          hash     state -> how many topics' goals are in it; expires

review.py, what waits for a judgement:

    sluice:{ID}:likely             zset     accepted documents worth a judgement, by when they passed; bounded
    sluice:{ID}:uncertain          zset     the same of those it abstained on
    sluice:{ID}:skipped            zset     documents not to be offered again, by when; bounded

known.py and imports.py:

    sluice:{ID}:known              hash     document -> title and features of a known item; bounded
    sluice:{ID}:PART:BORN                   the parts of a topic that is being imported; they expire

documents.py, the documents that are remembered, in PARTITIONS parts:

    sluice:documents:{P}           hash     document -> blob
    sluice:documents:{P}:order     list     the same ids, oldest first, so that the oldest can be forgotten
    sluice:documents:{P}:changes   stream   ids (JSON) of documents that came or changed, and of forgotten ones; bounded
    sluice:documents:store         string   a random name of this store: what is derived from another one is of no use

epochs.py, what the stream as a whole looks like:

    sluice:{background}:current    string   number of the newest epoch
    sluice:{background}:epochs     hash     number -> blob (see topics/background.py)
    sluice:{background}:lent       hash     number of an epoch that came with a topic -> the one then in force here
    sluice:{background}:projected  hash     number of an epoch -> number of the projection that it names, if any
    sluice:{background}:projections  hash   number -> blob (see topics/projections.py)

signatures.py, near-duplicates:

    sluice:{repeats}:noted         string   how many documents have been noted
    sluice:{repeats}:signatures    stream   ids (JSON) and signatures of some documents, numbered by the last; bounded

inbox.py, documents that arrive by a stream:

    sluice:in                      stream   documents to decide, added by anybody; each is deleted once it is decided
    sluice:dead                    stream   entries that could not be decided, with the reason; bounded
    sluice:consumer:NAME           hash     statistics of a consumer; expires when its process ends

outbox.py, the documents that a topic lets through:

    sluice:out:ID                  stream   an entry for each decision other than reject, bounded
    {sluice:out:ID}:lately         set      members of entries that were appended lately (see `_member`)
    {sluice:out:ID}:before         set      the same of those before them
    {sluice:out:ID}:owner          string   `born` of the topic whose stream it is; empty for a while after a deletion
    {sluice:out:ID}:began          string   since when, in milliseconds; absent if a process died before it was written
    {sluice:out:ID}:goal           hash     the state of the goal that was announced last, and by which version

routes.py, where a topic's stream is delivered to:

    sluice:routes                  hash     topic -> its routes, in JSON, secrets and all
    sluice:route:ROUTE             hash     delivered, failed; when and why last
    {sluice:route:ROUTE}:dead      stream   entries that were given up: place in the topic's stream, document, reason
    sluice:deliveries              hash     delivered, failed, given_up: over all routes, ever

jobs.py:

    sluice:{jobs}:job:JOB          hash     the record of a job (see `JobRecord`), tries, cancel, claim, lease_ms
    sluice:{jobs}:all              zset     ids of all jobs; an id begins with the time of submission
    sluice:{jobs}:waiting          set      jobs that wait or run, and some that just ended, until the next claim
    sluice:{jobs}:taken            hash     topic -> the job that retrains it now

api_keys.py, who may call:

    sluice:{access}:keys           hash     id -> the record of a key, in JSON, with a hash of the key itself
    sluice:{access}:used           hash     id -> when it was last used, to the minute
    sluice:{access}:rate:ID        string   when the allowance of a key is whole again, in microseconds; expires

sources.py:

    sluice:{sources}:all           zset     ids of all sources, in order of name
    sluice:{sources}:addresses     hash     address -> the source that reads it
    sluice:{sources}:due           zset     sources that are not paused, by when they are polled next
    sluice:{sources}:source:ID     hash     the record of a source (see `SourceRecord`), claim, lease_ms
    sluice:{sources}:seen:ID       hash     key of an item -> its print, and when it was offered last; bounded
    sluice:{sources}:totals        hash     polls that succeeded and failed, documents: over all sources, ever

The braces are Redis Cluster's hash tags: all keys of a topic live in one slot, so one script may touch them together,
and nothing needs two slots at once. The streams in and out have names for people to type, without braces; the other
keys of a stream are in its slot because the stream's whole name is their tag.

The logs, the documents, the epochs that logs name, and what stands beside a log without touching the model (counts,
queues, known items, routes) are the truth; all else is derived from the logs, and `run/replay.py` rebuilds it.
"""

TOPICS = "sluice:topics"
PARTS = ("topic", "log", "judged", "model", "versions", "tally", "likely", "uncertain", "skipped", "known")
CHANGES = "sluice:changes"

PASSED = "sluice:{stream}:passed"
DECIDED = "sluice:{stream}:decided"
GOALS = "sluice:{stream}:goals"

CURRENT_EPOCH = "sluice:{background}:current"
EPOCHS = "sluice:{background}:epochs"
LENT_EPOCHS = "sluice:{background}:lent"
PROJECTED_EPOCHS = "sluice:{background}:projected"
PROJECTIONS = "sluice:{background}:projections"

STORE_NAME = "sluice:documents:store"

NOTED = "sluice:{repeats}:noted"
SIGNATURES = "sluice:{repeats}:signatures"

IN = "sluice:in"
DEAD = "sluice:dead"

ROUTES = "sluice:routes"
DELIVERIES = "sluice:deliveries"

JOB = "sluice:{jobs}:job:"
ALL_JOBS = "sluice:{jobs}:all"
UNFINISHED_JOBS = "sluice:{jobs}:waiting"
TAKEN_TOPICS = "sluice:{jobs}:taken"

API_KEYS = "sluice:{access}:keys"
API_KEYS_USED = "sluice:{access}:used"

SOURCE = "sluice:{sources}:source:"
SEEN = "sluice:{sources}:seen:"
ALL_SOURCES = "sluice:{sources}:all"
ADDRESSES = "sluice:{sources}:addresses"
DUE_SOURCES = "sluice:{sources}:due"
SOURCE_TOTALS = "sluice:{sources}:totals"


def topic_key(topic: str, part: str) -> str:
    return f"sluice:{{{topic}}}:{part}"


def documents_key(partition: int) -> str:
    return f"sluice:documents:{{{partition}}}"


def documents_order_key(partition: int) -> str:
    return f"sluice:documents:{{{partition}}}:order"


def documents_changes_key(partition: int) -> str:
    return f"sluice:documents:{{{partition}}}:changes"


def consumer_key(name: str) -> str:
    return f"sluice:consumer:{name}"


def out_key(topic: str) -> str:
    return f"sluice:out:{topic}"


def out_part_key(topic: str, part: str) -> str:
    """A key beside the topic's stream: `lately`, `before`, `owner`, `began` or `goal`."""
    return f"{{{out_key(topic)}}}:{part}"


def route_key(route: str) -> str:
    return f"sluice:route:{route}"


def route_dead_key(route: str) -> str:
    return f"{{sluice:route:{route}}}:dead"


def rate_key(api_key: str) -> str:
    return f"sluice:{{access}}:rate:{api_key}"
