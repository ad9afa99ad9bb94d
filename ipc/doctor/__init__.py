"""What is wrong with a host, and what former boots and crashes left in /dev/shm."""
