"""References of the generated problems beside those in Python and JavaScript: one module and one file for each language."""
