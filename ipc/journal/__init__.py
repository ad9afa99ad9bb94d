"""The files of a journal: writing, reading, verifying, exporting.  It knows no queue."""
