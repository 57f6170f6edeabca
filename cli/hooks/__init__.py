"""Recording of agents' own tools, from the hook events of their programs.

Read `clients.event` first: the common form of an event. Each module of `clients` reads one program's events into it;
`handler` records them. `descriptions` holds TOML files: each describes a program, for `clients.described`. An event
must never delay or fail the agent, so nothing here prints errors or imports click.
"""
