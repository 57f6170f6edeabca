"""The handle of a workspace, and the tasks that it offers, one class for each.

`handle` opens a workspace and hands out the rest: `review` reports and decides; `history` looks up edits and states,
`sessions` the sessions and turns of agents; `comments` talks to them; `trials` runs commands on copies; `snapshots`,
`retention`, `transfer` and `remotes` do what their names say, and `remote_decisions` decides on what another store has.
They can be read in any order. A role opens the journal for reading or writing and calls one function of the package
that does the work; it has no rules of its own. `broken` says for the review whose lines a decision breaks. `shapes`
puts all that surfaces show into words and JSON.
"""
