"""What is on the disk outside the log: files and folders, git repositories, settings, ignore rules.

Read `fs` first: every change to a file goes through it. `file_changes` changes the user's files from one recorded state
to another, `git` reads repositories, `ignore_rules` decides which names scans leave out, `config` holds the settings,
and `witnesses` what is noted outside the log. Nothing here knows of the log, the index or the journal.
"""
