"""Keep what a person should hear of though no record has it: failed hooks, a history that is gone, remarks of scans.

Read `failure_marks` first, then `history_witness`: both keep small files in the user's state folder, where they outlive
the store. `remarks` keeps one in the store. None needs a lock, and none fails: what can't be kept is lost, and nothing
else. Nothing here opens the store or decides on an edit.
"""
