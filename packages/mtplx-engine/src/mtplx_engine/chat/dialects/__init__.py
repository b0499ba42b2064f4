"""How families of models write their calls of functions; one family, one module."""
