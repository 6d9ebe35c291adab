"""A recorded graph as an object: its data, its questions, its pictures."""
