"""Layouts of the shared structures and the kernels over them: memory and arithmetic only."""

if __name__ != "shmbroker.core":
    raise ImportError(
        f"import shmbroker.core, not {__name__}: a second copy of a module is a second protocol"
    )
