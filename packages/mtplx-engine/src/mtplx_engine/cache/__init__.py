"""Caches of the trunk and of the head, and how to take positions back."""
