"""One attempt of a worker: what it is told, how it is watched, and what it claims."""
