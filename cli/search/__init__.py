"""Search in the recorded history: for edits, for a text in them, and for names.

`edit_list` filters edits for `cas log`, `pickaxe` finds those that added or removed a text, `did_you_mean` suggests
names for unknown ones, `candidates` finds the values that a shell offers, and `selection_options` declares the options
that select edits. Results are values or sentences; printing them is the commands' part.
"""
