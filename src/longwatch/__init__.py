"""Longwatch supervises long unattended work and counts only what it verified itself."""

__version__ = "0.1.0"
