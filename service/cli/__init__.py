"""The command line, `sluice`. Its commands `serve`, `api`, `worker` and `consumer` run the service; all others are
clients of a running one, and know nothing of it but `service.client`.

In reading order:

    main.py            all commands, exit codes, and the four that run the service
    terminal.py        what commands share: options, input, output for people or for programs, errors
    topics.py          `sluice topics`, with the settings of a topic as options in `topic_options.py`
    documents.py       `sluice classify` and `sluice feedback`
    remembered.py      `sluice documents`: those that are remembered
    review.py          `sluice review`: judging with one key per document
    ranked.py          `sluice ranked` and `sluice feed`
    tail.py            `sluice tail`
    jobs.py            `sluice jobs`
    keys.py            `sluice keys`
    sources.py         `sluice sources`: feeds that the service reads by itself
    watch.py           `sluice watch`: from nothing to feeds that are filtered
    archive.py         `sluice export` and `sluice import`
    demo.py            `sluice demo`, which plays `service/demo`

Exit codes:

    0   done
    1   something was refused or failed, if only some lines; a sentence on stderr says why
    2   the command was used incorrectly

Modules here import only typer and the standard library at the top, and the client, rich and the rest where they use
them, so that help appears at once; tests/service/client/test_light.py counts the modules. Nobody imports this package
but the entry point `sluice`.
"""
