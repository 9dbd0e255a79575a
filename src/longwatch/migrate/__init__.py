"""`migrate`: a coding agent works through a queue of tasks, and only what was verified here is committed."""
