"""The server of `cas web`: the review in a browser, for one workspace and one user of this machine.

Read `server` first (start and end), then `guard` (which requests are served) and `connections` (which connections are
kept), `endpoints` (how a request becomes a call), `request_fields` (what it may say) and `routes/` (the answers); then
`views/` (what the page shows), `decisions/` (what it decides), and `diff_rows/` and `rendering/` (how text and
documents look). `server_state` is what the server remembers between requests, and `events` informs the open pages of
changes; `shared_answers` computes once what several of them ask for. `review_progress` knows what was decided since the
review began, and `on_screen` which rows of a decision no page has shown. `kept` bounds by bytes what is kept between
requests, and `memory` gives back what is free. `static/types.d.ts` describes requests and answers, and `shapes` makes
the parts that several answers have.

`objstore` makes every decision; this package translates. It must not know how the page draws anything, and must not
import the MCP SDK.
"""
