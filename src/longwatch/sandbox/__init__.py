"""Sandboxes: argv wrappers that hide the host from an untrusted program."""
