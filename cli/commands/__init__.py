"""The commands of `cas`, in folders by the headings of `cas --help`.

`reviewing`, `keeping`, `store` and `setting_up` hold one module per command or per few related commands; each folder's
docstring says which command is where, and `cli.shell.main.COMMANDS` is the table. A module is imported when one of its
commands is run. Commands don't import each other's folders.
"""
