"""The student: a base causal language model that is fetched, converted, loaded, and asked for answers."""
