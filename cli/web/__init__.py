"""The server of `cas web`: the review in a browser, for one workspace and one user of this machine.

Read `server` first (how it starts and ends), then `guard` (who may ask), `endpoints` (how a request becomes a call),
and `routes/` (what is answered); then `views/` (what the page shows), `decisions/` (what it decides), `diff_rows/` and
`rendering/` (how text and documents look). `static/types.d.ts` says what is sent, and `shapes` makes the parts that
several answers have. The package must not know how the page draws anything, nor the MCP SDK; what decides is
`objstore`, and here it is only asked.
"""
