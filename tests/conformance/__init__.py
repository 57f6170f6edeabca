"""The server under outside tests: the Inspector, the conformance suite, validators of what is sent to registries."""
