"""Run a command on a scratch copy of the workspace, as it is or as a decision would leave it.

Read `copy_contents` first: it lists what scans cover, and copies it. `copy_folder` makes the folder of a copy, removes
it, and sweeps what a killed process left. `process` runs the command. `bisection` searches for the changes that make it
fail; it is pure. `known_runs` keeps how commands ended on which files, and `failed_checks` which checks failed. Nothing
here decides, or writes into the workspace.
"""
