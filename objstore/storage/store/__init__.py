"""Combine the log and its index into one store of blobs and records.

Read `object_store` first, then `write_batch`, which appends blobs and records together. `unindexed` answers a writer's
questions about groups that the index doesn't have yet; `large_blob_writer` stores large blobs in constant memory;
`create` creates the folder of a store.

This package must not know the user's files, the weave, or what a record means.
"""
