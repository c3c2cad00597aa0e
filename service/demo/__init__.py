"""The demonstration behind `sluice demo`: made-up news, simulated readers, and a running service that learns from them.

In reading order:

    stories.py      the words of the news, from stories.json
    newswire.py     a stream of stories whose themes drift; everything follows from the seed
    readers.py      readers who know what they want, judge late, and err at times
    play.py         stories pass, readers judge, and what each topic gets right is counted
    screen.py       what people see of it

It asks the service through `service.client` like any other program, and its topics and documents have ids that begin
with `demo-`. `service/cli/demo.py` plays it; nobody else imports it. Nothing here decides or learns.
"""
