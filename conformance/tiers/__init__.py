"""Programs on a host tier: what is in flight, what is read while it is, and who is to blame."""
