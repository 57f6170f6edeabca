"""Put what surfaces show into words and JSON: one answer for the command line, the page and the chat.

`words` says in sentences what a decision did, or why it was refused. `values` and the other modules make the JSON that
`--json` prints; the page sends the same with what paging needs. No command is named here: surfaces add the hints that
fit them, and escape names as they show them.
"""
