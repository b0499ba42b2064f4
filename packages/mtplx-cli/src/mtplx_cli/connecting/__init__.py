"""Configurations with which other programs use the local server: made, shown and written.

An `Agent` says purely what its program needs; `formats` merge that into what a file holds;
`writing` touches the disk.
"""
