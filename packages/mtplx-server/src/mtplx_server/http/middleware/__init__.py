"""What happens to every reply, whatever it is."""
