"""The person's git repository: clean checkouts, what an attempt changed, and the one place that commits and pushes."""
