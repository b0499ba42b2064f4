from mtplx_server._version import __version__
