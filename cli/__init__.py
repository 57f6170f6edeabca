"""The command `cas`: a person's view of the history, and the desk where edits are decided."""
