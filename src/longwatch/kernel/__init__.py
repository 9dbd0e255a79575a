"""The kernel: what every watch gets. It knows nothing of git, of agents or of models."""
