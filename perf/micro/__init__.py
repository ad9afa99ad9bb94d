"""Programs that measure one part each."""
