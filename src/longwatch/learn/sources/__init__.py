"""Where tasks come from: made here, from a file, or from a public set that is pinned by digest (L1)."""
