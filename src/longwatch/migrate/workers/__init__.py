"""Worker adapters: one small file for each agent program."""
