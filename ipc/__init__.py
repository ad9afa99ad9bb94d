"""One host: segments, the verbs that programs use on a ring, and the C library."""

if __name__ != "shmbroker.ipc":
    raise ImportError(
        f"import shmbroker.ipc, not {__name__}: a second copy of a module is a second protocol"
    )
