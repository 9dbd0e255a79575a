"""Executors run the programs of steps. One contract suite for all of them."""
