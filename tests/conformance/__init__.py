"""The server before outside judges: the Inspector, the conformance suite, validators of what registries are told."""
