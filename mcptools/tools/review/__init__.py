"""The review in a chat: the tools of a client's window, and what a model reads of what awaits a person.

Read `review_tools` first (the family), then `pending_changes` (which net changes are shown) and `review_words` (how
they and a person's decisions are worded). An agent never decides here: `review_tools` takes a person's decisions alone.
"""
