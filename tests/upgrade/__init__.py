"""Rolling upgrades from one version to another, under load."""
