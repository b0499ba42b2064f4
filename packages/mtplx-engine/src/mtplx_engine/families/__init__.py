"""What differs between model families that can draft."""
