"""The server before outside judges: the Inspector, the conformance suite, and the validators of bundles and of the registry's entries."""
