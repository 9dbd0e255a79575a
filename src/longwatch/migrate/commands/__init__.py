"""Which commands a card or a configuration may ask for."""
