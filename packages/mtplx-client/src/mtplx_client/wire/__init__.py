"""What goes over the wire: one module per surface, shared by the client and the server.

Knows pydantic and nothing else; importing it does not import an HTTP library.
"""
