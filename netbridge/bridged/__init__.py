"""What bridges do beside shipping their queue as it is: selecting and changing messages."""
