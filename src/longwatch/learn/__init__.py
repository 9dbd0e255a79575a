"""`learn`: a small code model is fine-tuned in bounded experiments, and a new adapter is accepted only on evidence."""
