"""Real clients, pinned and run headless against a scripted model on loopback: what they do must be recorded.

Read `scripted_model` and `dialects` (the model), then `programs` (how each client is installed and run) and `scenarios`
(what is tried and what must come of it). Run it with `make clients`.
"""
