"""Search in the recorded history: for edits, for a text in them, and for names.

`edit_list` filters edits for `cas log`, `pickaxe` finds those that added or removed a text, `did_you_mean` suggests
what an unknown name, command or option may have been meant for, and `candidates` finds the values that a shell offers.
Results are values or sentences; printing them is the commands' part.
"""
