"""The page of `longwatch web` (specification K40). Nothing of the supervisor knows it; a broken page stops no work."""
