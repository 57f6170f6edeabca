"""The server of `cas web`: the review in a browser, for one workspace and one user of this machine.

Read `server` first (start and end), then `guard` (which requests are served), `endpoints` (how a request becomes a
call), and `routes/` (the answers). `static/types.d.ts` describes requests and answers. `objstore` makes every decision;
this package translates. It must not know how the page draws anything, and must not import the MCP SDK.
"""
