"""Problems of a host, and segments that crashes and former boots left in /dev/shm."""
