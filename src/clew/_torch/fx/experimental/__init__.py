"""Parts of fx that may change."""
