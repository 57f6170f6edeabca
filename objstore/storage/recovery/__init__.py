"""Find and complete the file changes that a writer recorded before it died: `roll_forward`.

This package must not know the writer lock, the weave, or why a record was made; `transaction` calls it under the lock.
"""
