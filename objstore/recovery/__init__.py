"""Find and complete the file changes that a writer recorded before it died.

Read `unfinished_steps` first: it computes what remains to be done. `power_loss` inspects files after a reboot, and
`roll_forward` applies the steps. Three small files in the store support this: `applied_marker`, `durable_horizon` and
`recovery_note`.

This package must not know the writer lock, the weave, or why a record was made; `transaction` calls it under the lock.
"""
