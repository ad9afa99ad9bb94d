"""The program's end of a session: `shmbroker.connect("tcp://...")`, and the same for asyncio.

Verbs, arguments, defaults and documentation are those of a local connection (ipc/connection,
ipc/queue, ...): each verb here is a twin of one there, written once as a coroutine.  What cannot be
over a link raises NotLocal.  `session.py` carries out what the machine of netbridge/remote says.
"""
