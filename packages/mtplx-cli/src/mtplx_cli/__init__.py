from mtplx_cli._version import __version__
