"""Sources: documents that Sluice fetches itself, from feeds, files and folders, and passes on to be decided.

In reading order:

    items.py       what a source offers, and how an item becomes a document with an id that stays
    text.py        from HTML to text
    feeds.py       from the bytes of a feed to items: RSS, Atom, JSON Feed; refuses XML that attacks
    child.py       the process that does this, with limits to its time and memory
    parsing.py     starts that process, and kills it
    fetching.py    one look at an address: conditional, bounded, every redirect checked
    files.py       the next records of a file that grows, is rotated or truncated
    folders.py     the files of a folder that are new
    records.py     from lines and messages to documents
    schedule.py    when to look again
    seen.py        which items are new
    polling.py     puts these together, for sources that are due, and appends what is new to `sluice:in`
    opml.py        lists of feeds, as feed readers exchange them
    sources.py     what users do with sources: add, list, change, try, poll now

service/store/sources.py has the records and says who polls what; the housekeeper (service/run) runs the polling.

From outside, use `Sources`, and `Polling.run` in the process that polls. feeds.py is for child.py only: what a
publisher sends is parsed in no other process.
"""
