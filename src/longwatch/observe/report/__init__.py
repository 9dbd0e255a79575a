"""`report`: what a watch did, as one file that needs nothing beside it (specification L36)."""
