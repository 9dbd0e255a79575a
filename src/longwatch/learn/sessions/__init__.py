"""Taking over a prepared session: the folder of a learn watch, on this machine or copied from another (L28).

`looking` proves that it holds an accepted, verified adapter, verified training data and a completed base evaluation, and
names everything that is missing or wrong at once. `taking` makes a new watch of it, whole or not at all. The session is
only ever read.
"""

from longwatch.learn.sessions.looking import Session, look
from longwatch.learn.sessions.taking import take

__all__ = ["Session", "look", "take"]
