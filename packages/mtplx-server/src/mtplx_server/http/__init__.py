"""The protocols on HTTP. Besides `app` and `run`, the only place that knows Sanic."""
