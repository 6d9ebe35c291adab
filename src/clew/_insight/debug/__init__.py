"""What clew.debug offers, one file each."""
