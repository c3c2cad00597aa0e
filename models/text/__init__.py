"""Text: from a title and a text to counted features; near-duplicates; rules.

Every text goes through the same analysis, be it a query, a document or a word of a rule, so that they match.

Reading order. From text to features:

1. `analysis.py`: what a term is, `Bags` of features, and the plain version of all that follows
2. `unicode.py`: what a code point is, and what it folds to
3. `tokens.py`: the same as `analysis.py`, compiled; `runs.py` finds the words for it, `counting.py` counts them
4. `idf.py`: how common each word is in the stream; `function_words.py` is its prior

Texts that resemble each other:

5. `projection.py`: what a document is about, as a place among the documents of the stream
6. `minhash.py`: signatures, and groups of near-duplicates among judged documents
7. `duplicates.py`: which recent document of a stream a new one repeats

And besides:

8. `rules.py`: the language of `accept_if` and `reject_if`
9. `json_shape.py`: how much work a JSON text will be, before it is parsed

From outside use `Analysis`, `Bags`, `bags`, `terms` and `features_of` rather than the kernels. A feature is stored in
exported models: changing the hash in `tokens.py`, or what a term is, is a new format.
"""
