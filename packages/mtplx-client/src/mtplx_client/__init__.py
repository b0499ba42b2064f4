from mtplx_client._version import __version__
