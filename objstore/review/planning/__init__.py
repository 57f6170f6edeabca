"""Compute what a decision on edits would do, or why it is refused, and record it; change no file.

Read `planner` with `plan` first. `path_conflicts` and `replay_check` find reasons to refuse, and `ways_out` what else
would have to be decided then. `marker_files` shows conflicts in the text, and `marker_removal` removes them.
`kept_lines` keeps what others wrote in a file whose creation is rejected. Nothing here knows
which edits a person may name, or how a decision is undone.
"""
