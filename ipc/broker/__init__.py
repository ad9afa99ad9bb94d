"""What the broker process does for a vhost: it writes the journal and restores from it."""
