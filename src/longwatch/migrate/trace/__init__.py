"""Pure parsers of the event streams of agent programs."""
