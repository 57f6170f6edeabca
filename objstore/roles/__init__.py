"""The tasks that a workspace offers, one class for each, handed out by `Workspace`.

`review` reports and decides; `history` looks up edits and states, `sessions` the sessions and turns of agents;
`comments` talks to them; `trials` runs commands on copies; `snapshots`, `retention` and `transfer` do what their names
say. They can be read in any order. A role opens the journal for reading or writing and calls one function of the
package that does the work; it has no rules of its own. Roles must not know each other or the workspace.
`broken` says for the review role whose lines a decision breaks.
"""
