"""A program that counts its active seconds and does nothing else.

python -m tests.support.metered FOLDER
"""

import sys
import threading
from pathlib import Path

from longwatch.learn.experiment.meter import Meter

if __name__ == "__main__":
    with Meter(Path(sys.argv[1]), 3600, lambda: "train"):
        print("counting", flush=True)
        threading.Event().wait()
