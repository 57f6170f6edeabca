"""The `cas` command: what people use to look at the history and to decide on edits.

`shell` starts it and finds the command in `commands`; a command reads its options (`app`, `selection`, `search`), calls
one thing of `objstore`, and prints the result (`render` and `screen` for a person, `json_shapes` for a program, `plots`
as pictures). `review_ui` and `web` are the review in a terminal and in a browser; `hooks` and `setup` connect agent
programs. Nothing here imports `mcptools`, or anything of `objstore` but its public names.
"""
