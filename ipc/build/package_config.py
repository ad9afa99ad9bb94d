"""shmbroker.pc, by which pkg-config finds the C library, in a package or in a system's folders.

Inside a package the file tells its own place, and programs get the library's path compiled in.  In
a system's folders the loader finds the library (ldconfig), and a path in programs is unwanted.
Paths are in quotation marks, because folders may have blanks.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Folders:
    prefix: str
    libraries: str
    headers: str
    programs_know_it: bool
    """Programs get the path of the library compiled in."""


IN_PACKAGE = Folders("${pcfiledir}/../..", "${prefix}/lib", "${prefix}/include", True)


def package_config(version: str, folders: Folders) -> str:
    path = ' "-Wl,-rpath,${libdir}"' if folders.programs_know_it else ""
    return f"""\
prefix={folders.prefix}
libdir={folders.libraries}
includedir={folders.headers}

Name: shmbroker
Description: Messages between processes through rings in shared memory
Version: {version}
Cflags: "-I${{includedir}}"
Libs: "-L${{libdir}}" -lshmbroker{path}
"""
