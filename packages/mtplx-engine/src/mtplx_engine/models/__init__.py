"""Finding, describing and loading models."""
