"""The champion as a model of its own: its adapter merged into the base, in a format that others load (L37).

Read in this order: `merging` (the weights), `safetensors` and `gguf` (the two formats), `proving` (the exported files sit the same
exam as the champion), `story` (all of it, whole or not at all).
"""
