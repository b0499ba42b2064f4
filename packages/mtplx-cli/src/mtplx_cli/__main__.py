"""`python -m mtplx_cli` is `mtplx`."""

from mtplx_cli.main import main

if __name__ == "__main__":
    main()
