"""Show what pending edits change together, and which of these net changes a reviewer has seen.

Read `net_view` first; `net_summary` has the same without texts, from the cache in `net_cache`. `net_selection` limits
both to a turn or session, and `seen_changes` remembers what was shown.
What one net change is, `objstore/weave/net_changes.py` says. Nothing here changes an edit or its status.
"""
