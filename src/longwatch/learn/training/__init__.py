"""Training of an adapter: rows and order are pure, `loop` reads top to bottom, `checkpoints` survive any death.

torch and peft are imported by `loop` and what it stands on, so only by child programs; nothing is imported here.
"""
