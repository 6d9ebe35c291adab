"""What is done with recorded programs."""
