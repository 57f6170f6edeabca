"""Search in the recorded history: for edits, for a text in them, and for names.

`edit_list` filters edits for `cas log`, `pickaxe` finds those that added or removed a text, `did_you_mean` suggests
names for unknown ones, and `candidates` finds the values that a shell offers. Results are values or sentences; printing
them is the commands' part.
"""
