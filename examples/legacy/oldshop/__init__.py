"""The shop as it was."""
