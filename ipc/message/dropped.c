/* Dropped: what a message does when nobody refers to it any more.

   It is given back.  A `__del__` in Python would be interrupted by Ctrl-C like any other code of
   Python: the exception is then ignored, as all are in there, and the message not given back.  In
   here nothing of Python runs, because _give_back_call is a function of C. */

#define Py_LIMITED_API 0x030b0000
#include <Python.h>

static PyObject *source_name, *message_name, *call_name;

static void give_back(PyObject *self)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback); /* of whoever drops it */
    PyObject *message = PyObject_GetAttr(self, message_name);
    if (!message)
        PyErr_Clear(); /* Ctrl-C came before it was set: nobody calls it taken */
    else if (message != Py_None) {
        PyObject *call = PyObject_GetAttr(self, call_name);
        PyObject *source = PyObject_GetAttr(self, source_name);
        PyObject *code = NULL;
        if (call && source && PyObject_SetAttr(self, message_name, Py_None) == 0)
            code = PyObject_CallFunctionObjArgs(call, source, message, NULL);
        if (!code)
            PyErr_WriteUnraisable(self);
        Py_XDECREF(code);
        Py_XDECREF(source);
        Py_XDECREF(call);
    }
    Py_XDECREF(message);
    PyErr_Restore(type, error, traceback);
}

static PyType_Slot slots[] = {
    {Py_tp_doc, "Given back when nobody refers to it any more."},
    {Py_tp_finalize, give_back},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "shmbroker.ipc._dropped.Dropped",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "shmbroker.ipc._dropped",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__dropped(void)
{
    PyObject *module = PyModule_Create(&definition), *type = NULL;
    source_name = PyUnicode_InternFromString("_source");
    message_name = PyUnicode_InternFromString("_message");
    call_name = PyUnicode_InternFromString("_give_back_call");
    if (module && source_name && message_name && call_name)
        type = PyType_FromSpec(&spec);
    if (!type || PyModule_AddObjectRef(module, "Dropped", type) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(module);
        return NULL;
    }
    Py_DECREF(type);
    return module;
}
