"""What a person sees of a watch: read only. Delete it and the supervisor still works."""
