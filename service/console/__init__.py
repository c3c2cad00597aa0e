"""The console: pages for people, made on the server, at the same address as the API.

Reading order:

    words.py     what the contract's words are called where people read them; ages, links, marked text
    waiting.py   what waits for a judgement, over all topics or one, as items that a page can show
    pages.py     from values to HTML: templates, headers, errors as pages
    forms.py     what a form sends
    charts.py    what is drawn, as data
    static.py    the style sheet, the script, and the vendored files
    routes/      the pages, a module for each subject
    templates/   Jinja2, always escaping;  static/: served as they are, never from elsewhere

A page calls the same functions of the rooms below as the API does, by way of `Sluice`, and shows the contract's own
values; it knows no store. Whatever changes something is a POST, guarded as the API guards it (see api/deps.py).

Everything works with the strictest policy that browsers know: no script and no style but our files, no evaluation, no
other host. htmx replaces parts of a page, uPlot draws; the script of our own is for keys, for hiding what was judged
before the answer comes, and for drawing. Rejected: a framework with a build step (users have none, and there would be
two places that know what a topic is), and templates in the browser (what arrives would not be escaped in one place).

From outside: the routers in `routes/` and `static.files`, which `api/app.py` includes.
"""
