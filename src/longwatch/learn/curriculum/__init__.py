"""The generated curriculum: families of programming problems, endless and deterministic by seed (L1)."""
