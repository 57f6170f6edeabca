"""The server before outside judges: the Inspector, the conformance suite, and the validator of bundles."""
