"""The routes of `cas web`, one module for each kind of question, each with its list `ROUTES`.

Read `review` first. A module translates and asks `objstore` once; what several need is in the package above. Another
module is added to `ROUTES` in `cli.web.application`.
"""
