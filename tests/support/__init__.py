"""Helpers of the tests: toy lines, scripted servers, programs that misbehave."""
