"""The documents as a site: `make site` makes it, `python -m tools.site` if all is installed.

Pages of docs/, README.md, ARCHITECTURE.md and CHANGELOG.md are copied, references are made from the
code, and zensical makes HTML of both.  Links and anchors that lead nowhere end the build.
"""
