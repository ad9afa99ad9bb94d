"""What a person types and looks at: the command `shmbroker`."""

if __name__ != "shmbroker.cli":
    raise ImportError(
        f"import shmbroker.cli, not {__name__}: a second copy of a module is a second protocol"
    )
