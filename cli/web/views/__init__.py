"""What the page shows of the history, one module for each view of it.

Read `review_queue` first (what awaits review), then `file_view` (a file with its changes), `change_authors` (who wrote
them, and why) and `single_edits` (the edits behind a change); then `past_states` and `search_hits`. `past_states`
restores, and `single_edits` takes a part of a hunk out, each of what it showed. Nothing here knows a route.
"""
