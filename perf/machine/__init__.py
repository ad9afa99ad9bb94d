"""The machine that is measured on: processors, files, processes, packages."""
