"""Our own look at a candidate: checks, what their tests did, whether that is enough, and the signed answer."""
