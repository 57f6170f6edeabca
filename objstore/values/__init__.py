"""Values that every package uses: errors, cheap frozen classes, times.

Read `errors` first: the errors of files and of the store, as one tree; `request_errors` holds those of requests that
can't be met. `fastclass` makes frozen classes that are cheap to define, `clock` gives the time of records, and `dates`
reads the dates that people type. `garbage` holds Python's collector off. Nothing here imports another package.
"""
