"""The routes of `cas web`, one module for each kind of request, each with its list `ROUTES`.

Read `review` first, then `decisions`, `comments`, `history`, `store` (numbers and plots) and `documents` (rendered
Markdown, notebooks and images); `static_files` serves the page itself. A route translates a request, calls `objstore`
and translates the result. Code that several modules need is in `cli.web`. Add a new module's routes to those in
`cli.web.server`.
"""
