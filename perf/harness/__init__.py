"""A contest of peers: topologies, tasks, runs, and the check of what arrived."""
