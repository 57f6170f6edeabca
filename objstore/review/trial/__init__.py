"""Run a command on a scratch copy of the workspace, as it is or as a decision would leave it.

Read `covered` first: it lists what scans cover, and copies it. `scratch` makes the folder of a copy, removes it, and
sweeps what a killed process left. `process` runs the command. `bisection` searches for the changes that make it fail;
it is pure. `known_runs` keeps how commands ended on which files, and `failed_checks` which checks failed. Nothing here
decides, or writes into the workspace.
"""
