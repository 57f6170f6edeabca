"""The routes of `cas web`, one module for each kind of request, each with its list `ROUTES`.

Read `review` first. A route translates a request, calls `objstore` and translates the result. Code that several modules
need is in `cli.web`. Add a new module's routes to `ROUTES` in `cli.web.application`.
"""
