"""Who may call the service, and what with.

A caller shows a key: 256 random bits, of which the store keeps only a hash. A key has scopes, and each call of the API
needs one of them (the table is in api/scopes.py). Without `SLUICE_ACCESS=keys` nobody is asked for a key.

Reading order:

    secrets.py      what a key looks like; its hash
    keys.py         keys made, looked up, limited and revoked

From outside, use `Keys` and `Caller`. What is not defended here: a client that can reach the store needs no key, and a
connection that is not encrypted shows keys to those between; TLS is for a proxy in front.
"""
