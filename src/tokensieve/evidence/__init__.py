"""What the data alone shows, without any model."""
