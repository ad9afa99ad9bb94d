/* Taken: what Python calls for each single message, without cffi, which takes as long as the call.

   A message that nobody refers to any more is given back.  A `__del__` in Python would be
   interrupted by Ctrl-C like any other code of Python: the exception is then ignored, as all are in
   there, and the message not given back.  In here nothing of Python runs.

   The interpreter's lock is kept: nothing here waits.  Queues and messages come as addresses. */

#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <structmember.h>

#include "layout.h"
#include "shmbroker_private.h"

#define LOOKS 64 /* at most: some 2 us */

typedef struct taken {
    PyObject_HEAD
    sb_queue *queue;
    PyObject *kept; /* what it needs of its queue: no way from there leads back to it */
    PyObject *body; /* NULL: a large one is copied when it is asked for */
    sb_message message, *in_hand; /* NULL: it was dealt with */
    char dealt;
} taken;

static PyObject *body_of(taken *of, void *unused)
{
    if (of->body)
        return Py_NewRef(of->body);
    if (!of->in_hand)
        return PyObject_CallMethod((PyObject *)of, "_dealt_with", NULL);
    return PyBytes_FromStringAndSize(of->message.body, of->message.length);
}

static PyObject *ack(taken *of, PyObject *unused)
{
    if (!of->in_hand)
        return PyObject_CallMethod((PyObject *)of, "_dealt_with", NULL);
    of->in_hand = NULL;
    long long code = sb_ack(of->queue, &of->message), position = of->message.position;
    if (code == SB_OK)
        return Py_NewRef(Py_None);
    return PyObject_CallMethod((PyObject *)of, "_refused", "LL", code, position);
}

static void drop(taken *of)
{
    PyTypeObject *type = Py_TYPE((PyObject *)of);
    if (of->in_hand)
        sb_give_back(of->queue, of->in_hand);
    Py_XDECREF(of->body);
    Py_XDECREF(of->kept);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(of);
    Py_DECREF(type);
}

/* take(type, queue, kept): the oldest message; None: whoever may wait will be told why not.
 * take(type, queue, kept, message): this one, which was taken, and is in the new one's hand now. */
static PyObject *take(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    sb_queue *queue = PyLong_AsVoidPtr(given[1]);
    sb_message *from = count > 3 ? PyLong_AsVoidPtr(given[3]) : NULL;
    taken *made = (taken *)PyType_GenericAlloc((PyTypeObject *)given[0], 0);
    if (!made)
        return NULL;
    if (from) {
        made->message = *from;
        from->word = 0;
    } else if (sb_look(queue, &made->message, LOOKS) < 0) {
        Py_DECREF(made);
        return Py_NewRef(Py_None);
    }
    made->queue = queue;
    made->in_hand = &made->message;
    made->kept = Py_NewRef(given[2]);
    if (made->message.length <= L_COPIED_BYTES && !(made->body = body_of(made, NULL)))
        Py_CLEAR(made);
    return (PyObject *)made;
}

/* receive(queue): the body of the oldest message, which is acknowledged; None as above. */
static PyObject *receive(PyObject *module, PyObject *given)
{
    char buffer[L_COPIED_BYTES];
    sb_message message;
    sb_room room = {&message, buffer, sizeof buffer, NULL};
    sb_queue *queue = PyLong_AsVoidPtr(given);
    int64_t length = sb_look_and_receive(queue, &room, LOOKS);
    if (length >= 0)
        return PyBytes_FromStringAndSize(buffer, length);
    if (length != SB_TOO_SMALL)
        return Py_NewRef(Py_None);
    PyObject *body = PyBytes_FromStringAndSize(message.body, message.length);
    if ((body ? sb_ack(queue, &message) : sb_give_back(queue, &message)) == SB_OK || !body)
        return body;
    Py_DECREF(body); /* revoked meanwhile: somebody else has it */
    return Py_NewRef(Py_None);
}

/* publish(queue, body): the position of bytes with nothing of their own; None: it is not there. */
static PyObject *publish(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    int64_t position = -1;
    if (PyBytes_CheckExact(given[1]))
        position = sb_publish_now(PyLong_AsVoidPtr(given[0]), PyBytes_AsString(given[1]),
                                  PyBytes_Size(given[1]));
    return position < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(position);
}

static PyMethodDef methods[] = {
    {"ack", (PyCFunction)ack, METH_NOARGS, "ack($self)\n--\n\nThe message is dealt with; raises "
     "DeliveryRevoked if it is no longer ours."}, {0}};
static PyGetSetDef computed[] = {
    {"body", (getter)body_of, NULL, "A copy of the body.  Of a large one it is made when it is "
     "asked for: do so before ack().", NULL}, {0}};
static PyMemberDef members[] = {
    {"_queue", T_LONGLONG, offsetof(taken, queue), READONLY, NULL},
    {"_in_hand", T_LONGLONG, offsetof(taken, in_hand), 0, NULL},
    {"_kept", T_OBJECT_EX, offsetof(taken, kept), READONLY, NULL},
    {"_dealt", T_BYTE, offsetof(taken, dealt), 0, NULL}, {0}};
static PyType_Slot slots[] = {{Py_tp_dealloc, drop}, {Py_tp_methods, methods},
                              {Py_tp_getset, computed}, {Py_tp_members, members}, {0}};
static PyType_Spec spec = {"shmbroker.ipc._taken.Taken", sizeof(taken), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
static PyMethodDef functions[] = {
    {"take", (PyCFunction)(void *)take, METH_FASTCALL, NULL},
    {"receive", receive, METH_O, NULL},
    {"publish", (PyCFunction)(void *)publish, METH_FASTCALL, NULL}, {0}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "shmbroker.ipc._taken", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__taken(void)
{
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
    if (!module || !type || PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(module);
    return module;
}
