"""The only folder that speaks to an API server: client, watches feeding the model, writer, election, events.

Everything here that waits lives on one event loop in a thread of its own. The cycle's thread never waits for it: it
takes what the watches have gathered (`Mirror.news`) and leaves what it decided.

`config` says where the API server is and who we are, `client` makes requests, `resources` knows what the server has,
`watching` follows one kind of object, `mirror` brings all kinds into the model, `checking` compares it with a fresh
list.
"""
