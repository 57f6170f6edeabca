"""Keep outside the store what would be lost with it: that hooks failed, and that there was a history.

Read `failure_marks` first, then `history_witness`. Both keep small files in the user's state folder, need no lock, and
never fail: what can't be kept there is lost, and nothing else. Nothing here opens the store or decides on an edit.
"""
