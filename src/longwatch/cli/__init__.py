"""The command line: options, one call, print. No rule lives here."""
