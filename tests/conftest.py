"""What all tests need of the process that they run in."""

import signal

# A shell that starts the suite in the background lets it ignore interrupts, and every program under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
