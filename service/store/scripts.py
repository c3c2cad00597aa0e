"""Everything that two processes may do at once, as Lua: each script runs alone inside Redis, on one topic's slot.

KEYS are those of one topic, or of the background (see `topics.py`). What writes to a topic first compares `born`, the
token of this incarnation of it, so that a process which still holds a deleted topic cannot write into its successor.
`seq` counts the topic's events and is the version of the model that has folded them all.

A write whose answer got lost may have been applied. Each script is therefore harmless when run again: a judgement
that stands already is `known`, a save of an old version is ignored, and the rest compare `seq`, or a number like it,
first. (TALLY alone counts twice then, some documents of a stream of thousands.)
"""

# Judgements and withdrawals, any number in one go (one fsync). A judgement that says what stands already changes
# nothing. One that is new goes into the log with the number of documents that the topic has accepted so far. Flat
# arguments: born, count, then for each: "judge", document, label, number of fields, field, value, … or "withdraw",
# document, "", number of fields, …
APPEND = """
local topic, log, judged, tally = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
local answers, at, accepted = {}, 3, tonumber(redis.call('HGET', tally, 'accepted') or 0)
for n = 1, tonumber(ARGV[2]) do
  local op, document, label, width = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
  local standing = redis.call('HGET', judged, document)
  local status
  if op == 'judge' then
    status = (standing == label and 'known') or (standing and 'corrected') or 'learned'
  else
    status = standing and 'withdrawn' or 'absent'
  end
  local seq = tonumber(redis.call('HGET', topic, 'seq'))
  if status ~= 'known' and status ~= 'absent' then
    seq = redis.call('HINCRBY', topic, 'seq', 1)
    local fields = {unpack(ARGV, at + 4, at + 3 + width)}
    if status == 'learned' and accepted > 0 then fields[width + 1], fields[width + 2] = 'after', accepted end
    redis.call('XADD', log, seq .. '-0', unpack(fields))
    if op == 'judge' then redis.call('HSET', judged, document, label) else redis.call('HDEL', judged, document) end
  end
  answers[n] = {status, seq, status == 'learned' and accepted or 0}
  at = at + 4 + width
end
return answers
"""

# Makes a topic with its first event, unless it is there. Arguments: born, how many documents have passed so far, the
# event's fields.
CREATE = """
local topic, log, tally = KEYS[1], KEYS[2], KEYS[3]
if redis.call('EXISTS', topic, log) > 0 then return 0 end
redis.call('HSET', topic, 'born', ARGV[1], 'seq', 1, 'floor', 0)
redis.call('HSET', tally, 'since', ARGV[2])
redis.call('XADD', log, '1-0', unpack(ARGV, 3))
return 1
"""

# One event that may change everything (new settings, restore, publish, compaction), if nobody was faster: compares
# `seq`, appends, and where a new set of standing judgements is given, replaces the old one. Versions from before the
# floor can no longer be restored and are not listed. Arguments: born, expected seq, floor, "1" to replace judgements,
# then three counted lists: event fields, document and label pairs, ids of events that are no longer needed.
AMEND = """
local topic, log, judged, versions = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
if redis.call('HGET', topic, 'seq') ~= ARGV[2] then return 0 end
local at = 5
local function counted()
  local first, last = at + 1, at + tonumber(ARGV[at])
  at = last + 1
  return first, last
end
local seq = redis.call('HINCRBY', topic, 'seq', 1)
redis.call('HSET', topic, 'floor', ARGV[3])
redis.call('XADD', log, seq .. '-0', unpack(ARGV, counted()))
local first, last = counted()
if ARGV[4] == '1' then
  redis.call('DEL', judged)
  for from = first, last, 1000 do redis.call('HSET', judged, unpack(ARGV, from, math.min(from + 999, last))) end
end
first, last = counted()
for from = first, last, 1000 do redis.call('XDEL', log, unpack(ARGV, from, math.min(from + 999, last))) end
redis.call('XTRIM', versions, 'MINID', ARGV[3] .. '-0')
return seq
"""

# Publishes a model unless a newer one is there. A fold is deterministic, so whoever saves version n saves the same
# bytes, and the loser has nothing to do over. Arguments: born, version, blob, digest, record, versions kept, channel,
# message.
SAVE = """
local topic, model, versions = KEYS[1], KEYS[2], KEYS[3]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
local standing = redis.call('HGET', model, 'version')
if standing and tonumber(standing) >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', model, 'version', ARGV[2], 'blob', ARGV[3], 'digest', ARGV[4], 'born', ARGV[1])
local newest = redis.call('XREVRANGE', versions, '+', '-', 'COUNT', 1)[1]
if not newest or tonumber(string.match(newest[1], '%d+')) < tonumber(ARGV[2]) then
  redis.call('XADD', versions, 'MAXLEN', ARGV[6], ARGV[2] .. '-0', 'record', ARGV[5])
end
redis.call('PUBLISH', ARGV[7], ARGV[8])
return 1
"""

# Removes a topic and all that is known of it. Arguments: born, channel, message, the version it must have or nothing.
DELETE = """
if redis.call('HGET', KEYS[1], 'born') ~= ARGV[1] then return 0 end
if ARGV[4] ~= '' and redis.call('HGET', KEYS[1], 'seq') ~= ARGV[4] then return 0 end
redis.call('DEL', unpack(KEYS))
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
"""

# The head of a log and its next events. Arguments: first id, most events.
READ = """
local head = redis.call('HMGET', KEYS[1], 'born', 'seq', 'floor')
if not head[1] then return false end
return {head[1], head[2], head[3], redis.call('XRANGE', KEYS[2], ARGV[1], '+', 'COUNT', ARGV[2])}
"""

# Makes anew what can be derived from a log: its head, if that is lost, the judgements that stand, and the list of
# versions, if that is lost. The model is forgotten, for the next to save it. Arguments: born, seq, floor, then two
# counted lists: document and label pairs, version and record pairs.
REBUILD = """
local topic, judged, model, versions = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('EXISTS', topic) == 0 then
  redis.call('HSET', topic, 'born', ARGV[1], 'seq', ARGV[2], 'floor', ARGV[3])
elseif redis.call('HGET', topic, 'seq') ~= ARGV[2] then
  return 0
end
redis.call('DEL', judged, model)
local last = 4 + tonumber(ARGV[4])
for from = 5, last, 1000 do redis.call('HSET', judged, unpack(ARGV, from, math.min(from + 999, last))) end
if redis.call('EXISTS', versions) == 0 then
  for at = last + 2, #ARGV, 2 do redis.call('XADD', versions, ARGV[at] .. '-0', 'record', ARGV[at + 1]) end
end
return 1
"""

# Counts documents that were new, and queues for review those that were not rejected. A slot of the tally is taken over
# when its bucket is an older one. Arguments: born, how many had passed before, bucket, slot, most kept in a queue;
# counts of documents put to this topic by name, of accepted, of abstained; how many of the documents that follow are
# likely, and these; all others are uncertain.
TALLY = """
local topic, tally, likely, uncertain = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return 0 end
local since, bucket, slot, kept = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
redis.call('HSETNX', tally, 'since', since)
local order = 0  -- of arrival in the queues: a number that only grows
for i, name in ipairs({'named', 'accepted', 'abstained'}) do
  order = order + redis.call('HINCRBY', tally, name, ARGV[5 + i])
end
local b, n, a, u = string.match(redis.call('HGET', tally, slot) or '', '^(%d+) (%d+) (%d+) (%d+)$')
if not b or tonumber(b) < bucket then b, n, a, u = bucket, 0, 0, 0 end
if tonumber(b) == bucket then
  redis.call('HSET', tally, slot, string.format('%d %d %d %d', bucket, n + ARGV[6], a + ARGV[7], u + ARGV[8]))
end
local function queue(key, first, last)
  local pairs = {}
  for at = first, last do
    pairs[#pairs + 1] = order + at - #ARGV
    pairs[#pairs + 1] = ARGV[at]
  end
  for from = 1, #pairs, 1000 do
    redis.call('ZADD', key, 'NX', unpack(pairs, from, math.min(from + 999, #pairs)))
  end
  if last >= first then redis.call('ZREMRANGEBYRANK', key, 0, -kept - 1) end
end
local middle = 9 + tonumber(ARGV[9])
queue(likely, 10, middle)
queue(uncertain, middle + 1, #ARGV)
return 1
"""

# A topic decides otherwise from now on. Arguments: born, documents that have passed.
ANEW = """
local topic, tally = KEYS[1], KEYS[2]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return 0 end
local counts = redis.call('HMGET', tally, 'named', 'accepted', 'abstained')
for i = 1, 3 do counts[i] = counts[i] or 0 end
redis.call('HSET', tally, 'anew', ARGV[2] .. ' ' .. table.concat(counts, ' '))
return 1
"""

# A topic is retrained by itself. Arguments: born, what stood there before (empty for nothing), what is to stand there.
RETRAINED = """
local topic, tally = KEYS[1], KEYS[2]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return 0 end
if (redis.call('HGET', tally, 'retrained') or '') ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('HDEL', tally, 'retrained') else redis.call('HSET', tally, 'retrained', ARGV[3]) end
return 1
"""

# What waits for a judgement, newest first, and what shall not be offered. Arguments: born.
QUEUED = """
if redis.call('HGET', KEYS[1], 'born') ~= ARGV[1] then return false end
local found = {}
for i = 2, #KEYS do found[i - 1] = redis.call('ZREVRANGE', KEYS[i], 0, -1) end
return found
"""

# A document is not to be offered again. Arguments: born, document, time, most that are kept.
SKIP = """
local topic, skipped, likely, uncertain = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
redis.call('ZADD', skipped, 'NX', ARGV[3], ARGV[2])
redis.call('ZREMRANGEBYRANK', skipped, 0, -tonumber(ARGV[4]) - 1)
redis.call('ZREM', likely, ARGV[2])
redis.call('ZREM', uncertain, ARGV[2])
return 1
"""

# Known items, all or none. Answers how many there are now and how many of them are new, or nothing of either if these
# are too many. Arguments: born, most, then document, blob, …
KNOW = """
local topic, known = KEYS[1], KEYS[2]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
local before, new = redis.call('HLEN', known), 0
for at = 3, #ARGV, 2 do new = new + 1 - redis.call('HEXISTS', known, ARGV[at]) end
if before + new > tonumber(ARGV[2]) then return {} end
for at = 3, #ARGV, 2 do redis.call('HSET', known, ARGV[at], ARGV[at + 1]) end
return {before + new, new}
"""

# Writes a part of what will be a topic, under a name that expires. Arguments: command, seconds, then entries, counted.
STAGE = """
local at = 3
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  redis.call(ARGV[1], KEYS[1], unpack(ARGV, at + 1, last))
  at = last + 1
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""

DISCARD = "return redis.call('DEL', unpack(KEYS))"

# Makes a topic of what was staged: its parts, then pairs of a part and the name it was staged under. Where the topic is
# there already, it stays, unless it is to be replaced; one that came with the same file is said to be there.
# Arguments: born, seq, floor, digest of the file, "1" to replace, how many parts, then the tally.
IMPORT = """
local topic, log, tally, parts = KEYS[1], KEYS[2], KEYS[6], tonumber(ARGV[6])
if redis.call('EXISTS', KEYS[parts + 2]) == 0 then return redis.error_reply('TRYAGAIN what was staged has expired') end
local there = redis.call('EXISTS', topic, log) > 0
if there and ARGV[5] ~= '1' then
  return redis.call('HGET', topic, 'origin') == ARGV[4] and 'there' or 'taken'
end
for at = 1, parts do redis.call('DEL', KEYS[at]) end
redis.call('HSET', topic, 'born', ARGV[1], 'seq', ARGV[2], 'floor', ARGV[3], 'origin', ARGV[4])
redis.call('HSET', tally, unpack(ARGV, 7))
for at = parts + 1, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[at + 1]) == 1 then
    redis.call('RENAME', KEYS[at + 1], KEYS[at])
    redis.call('PERSIST', KEYS[at])
  end
end
return there and 'replaced' or 'made'
"""
