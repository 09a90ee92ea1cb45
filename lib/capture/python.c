/* Reads Python stacks from a thread that Python does not know, through public functions only.
 *
 * A main thread that runs Python reads the stack itself, by a pending call: at once, and without
 * giving up the GIL. Else our thread takes the GIL, which is then free or in the hands of another
 * thread. The danger is the end: a foreign thread that asks for the GIL while the interpreter is
 * finalised is hung or ended, and after that crashes. So the main thread first registers a
 * function with the atexit module, which is called before finalisation begins, waits until no
 * stack is being taken and forbids any further one. Before it is registered none is taken.
 *
 * No Python code of anybody's runs for a stack: frames are read one by one, garbage collection is
 * held off (it runs finalisers), sys._current_frames() is not called (it runs audit hooks). */
#include "python.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MINOR_MIN   9
#define MINOR_MAX   14 /* the newest that was tested */
#define STATE_WORDS 32 /* of a thread's state that are looked at; the smallest has 33 */
#define STATES_MAX  16384u
#define PATIENCE    500000L /* ns for the main thread to come to a bytecode */

/* ---- what is used of CPython ------------------------------------- */

struct method { /* PyMethodDef, unchanged since 2.x */
    const char *name;
    void *(*run)(void *self, void *args);
    int flags;
    const char *doc;
};
#define METH_NOARGS 4

#define PYTHON(X)                                                                                  \
    X(int, Py_IsInitialized, (void))                                                               \
    X(int, Py_AddPendingCall, (int (*)(void *), void *))                                           \
    X(int, PyGILState_Ensure, (void))                                                              \
    X(void, PyGILState_Release, (int))                                                             \
    X(int, PyGILState_Check, (void))                                                               \
    X(void *, PyEval_SaveThread, (void))                                                           \
    X(void, PyEval_RestoreThread, (void *))                                                        \
    X(void *, PyInterpreterState_Main, (void))                                                     \
    X(void *, PyInterpreterState_ThreadHead, (void *))                                             \
    X(void *, PyThreadState_Get, (void))                                                           \
    X(void *, PyThreadState_Next, (void *))                                                        \
    X(void *, PyThreadState_GetFrame, (void *))                                                    \
    X(void *, PyFrame_GetBack, (void *))                                                           \
    X(void *, PyFrame_GetCode, (void *))                                                           \
    X(int, PyFrame_GetLineNumber, (void *))                                                        \
    X(void *, PyObject_GetAttr, (void *, void *))                                                  \
    X(void *, PyObject_GetAttrString, (void *, const char *))                                      \
    X(void *, PyObject_CallFunctionObjArgs, (void *, ...))                                         \
    X(void *, PyUnicode_InternFromString, (const char *))                                          \
    X(const char *, PyUnicode_AsUTF8AndSize, (void *, ssize_t *))                                  \
    X(void *, PyImport_ImportModuleLevel, (const char *, void *, void *, void *, int))             \
    X(void *, PyCFunction_NewEx, (struct method *, void *, void *))                                \
    X(void *, Py_BuildValue, (const char *, ...))                                                  \
    X(void, PyErr_Clear, (void))                                                                   \
    X(void, Py_DecRef, (void *))

static struct {
#define X(ret, name, params) ret(*name) params;
    PYTHON(X)
#undef X
    int (*is_finalizing)(void);
    int (*gc_disable)(void); /* from 3.10; in 3.9 a walk allocates nothing */
    int (*gc_enable)(void);
} py;

static unsigned minor;

bool gw_python_find(const char **why)
{
    *why = NULL;
    const char *(*get_version)(void) = (const char *(*)(void))gw_resolve_default("Py_GetVersion");
    if (!get_version)
        return false;
    const char *version = get_version();
    minor = version[0] == '3' && version[1] == '.' ? (unsigned)atoi(version + 2) : 0;
    if (minor < MINOR_MIN || minor > MINOR_MAX)
        *why = "not tested with this version of Python";
    else if (strstr(version, "free-threading"))
        *why = "not tested with free-threaded Python";
    if (*why)
        return false;
    bool all = true;
#define X(ret, name, params) all &= (py.name = (ret(*) params)gw_resolve_default(#name)) != NULL;
    PYTHON(X)
#undef X
    py.is_finalizing = (int (*)(void))gw_resolve_default("Py_IsFinalizing"); /* from 3.13 */
    if (!py.is_finalizing)
        py.is_finalizing = (int (*)(void))gw_resolve_default("_Py_IsFinalizing");
    py.gc_disable = (int (*)(void))gw_resolve_default("PyGC_Disable");
    py.gc_enable = (int (*)(void))gw_resolve_default("PyGC_Enable");
    if (!all || !py.is_finalizing || (minor > 9 && (!py.gc_disable || !py.gc_enable)))
        *why = "this Python lacks functions of CPython's";
    return !*why;
}

/* ---- who may hold the GIL ---------------------------------------- */

enum phase {
    ABSENT,
    ASKED,   /* the main thread has not registered yet */
    IDLE,    /* our thread is outside the interpreter */
    BUSY,    /* our thread has the GIL or waits for it */
    FORKING, /* it must not */
    OVER,
};
static uint32_t phase;

static uint32_t ident_at; /* word of a thread's state that holds its pthread_self() */
static bool ident_sure;   /* our own thread agrees */
static uint64_t main_thread;
static bool refused;                          /* the interpreter is not as expected */
static void *name_of_file, *name_of_function; /* the attributes of a code object */

static bool change(uint32_t from, uint32_t to)
{
    return gw_cas(&phase, &from, to);
}

bool gw_python_over(bool *failed)
{
    *failed = gw_load_relaxed(&refused);
    return gw_load_acquire(&phase) == OVER;
}

/* pre:  the GIL is held. post: index of the word, 0: none. */
static uint32_t find_ident(void)
{
    const uint64_t *words = py.PyThreadState_Get();
    for (uint32_t i = 1; i < STATE_WORDS; i++)
        if (words[i] == (uint64_t)pthread_self())
            return i;
    return 0;
}

/* Called by the atexit module, with the GIL, on the thread that ends the interpreter. */
static void *end(void *self, void *args)
{
    const struct timespec nap = {.tv_nsec = 50000};
    uint64_t deadline = gw_clock_ns(CLOCK_MONOTONIC) + 200000000u;
    (void)self;
    (void)args;
    while (!change(IDLE, OVER) && gw_load_acquire(&phase) == BUSY &&
           gw_clock_ns(CLOCK_MONOTONIC) < deadline) { /* it waits for what we hold */
        void *thread = py.PyEval_SaveThread();
        nanosleep(&nap, NULL);
        py.PyEval_RestoreThread(thread);
    }
    /* Past the deadline it goes the way of any daemon thread, which is stopped where it asks
     * for the GIL. */
    gw_store_release(&phase, OVER);
    return py.Py_BuildValue("");
}

static bool register_end(void)
{
    static struct method method = {"gpuwait", end, METH_NOARGS, NULL};
    void *module = py.PyImport_ImportModuleLevel("atexit", NULL, NULL, NULL, 0);
    void *add = module ? py.PyObject_GetAttrString(module, "register") : NULL;
    void *function = add ? py.PyCFunction_NewEx(&method, NULL, NULL) : NULL;
    void *done = function ? py.PyObject_CallFunctionObjArgs(add, function, NULL) : NULL;
    void *const references[] = {module, add, function, done};
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++)
        if (references[i])
            py.Py_DecRef(references[i]);
    return done != NULL;
}

/* The pending call: on the main thread, with the GIL, between two bytecodes. */
static int introduce(void *unused)
{
    (void)unused;
    if (gw_load_acquire(&phase) != ASKED)
        return 0;
    main_thread = (uint64_t)pthread_self();
    ident_at = find_ident();
    ident_sure = false;
    name_of_file = py.PyUnicode_InternFromString("co_filename");
    name_of_function = py.PyUnicode_InternFromString(minor >= 11 ? "co_qualname" : "co_name");
    bool good =
        !py.is_finalizing() && ident_at && name_of_file && name_of_function && register_end();
    if (!good) {
        py.PyErr_Clear();
        gw_store_relaxed(&refused, true);
    }
    change(ASKED, good ? IDLE : OVER); /* partner: gw_python_do() */
    return 0;
}

bool gw_python_introduce(void)
{
    if (!py.Py_IsInitialized() || py.is_finalizing() || !change(ABSENT, ASKED))
        return false;
    if (py.Py_AddPendingCall(introduce, NULL) == 0)
        return true;
    gw_store_release(&phase, OVER);
    return false;
}

/* A job for the main thread. */
enum { NONE, OPEN, TAKEN, DONE };
static uint32_t request, queued;
static void (*request_job)(void);

static void futex(int op, uint32_t value, const struct timespec *timeout)
{
    syscall(SYS_futex, &request, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/* The other pending call. One may be served late, when nobody asks any more. */
static int serve(void *unused)
{
    uint32_t open = OPEN;
    int saved = errno;
    (void)unused;
    gw_store_release(&queued, 0);
    if (gw_cas(&request, &open, TAKEN)) {
        request_job();
        gw_store_release(&request, DONE); /* partner: by_main_thread() */
        futex(FUTEX_WAKE, 1, NULL);
    }
    errno = saved;
    return 0;
}

/* post: false: it is not at a bytecode, and will not do the job. */
static bool by_main_thread(void (*job)(void))
{
    const struct timespec patience = {.tv_nsec = PATIENCE}, nap = {.tv_nsec = 50000};
    uint32_t open = OPEN;
    request_job = job;
    gw_store_release(&request, OPEN);
    if (!gw_exchange(&queued, 1) && py.Py_AddPendingCall(serve, NULL) != 0)
        gw_store_release(&queued, 0);
    futex(FUTEX_WAIT, OPEN, &patience);
    if (gw_cas(&request, &open, NONE))
        return false;
    while (gw_load_acquire(&request) != DONE) /* it is at it */
        nanosleep(&nap, NULL);
    return true;
}

static void by_own_thread(void (*job)(void))
{
    int gil = py.PyGILState_Ensure();
    ident_sure = ident_sure || find_ident() == ident_at;
    if (ident_sure) {
        job();
    } else {
        gw_store_relaxed(&refused, true);
        gw_store_release(&phase, OVER);
    }
    py.PyGILState_Release(gil);
}

bool gw_python_do(void (*job)(void))
{
    if (!change(IDLE, BUSY))
        return false;
    /* Somebody may have cleared the atexit module's list. */
    if (!py.Py_IsInitialized() || py.is_finalizing()) {
        gw_store_release(&phase, OVER);
        return false;
    }
    if (!ident_sure || !by_main_thread(job))
        by_own_thread(job);
    change(BUSY, IDLE); /* unless end() gave up on us */
    return ident_sure;
}

/* ---- reading ----------------------------------------------------- */

/* post: a new reference to the innermost frame, NULL: no such thread, or it runs no Python. */
static void *frame_of(uint64_t pthread)
{
    void *state = py.PyInterpreterState_ThreadHead(py.PyInterpreterState_Main());
    for (uint32_t n = 0; state && n < STATES_MAX; n++, state = py.PyThreadState_Next(state)) {
        void *frame;
        if (((const uint64_t *)state)[ident_at] == pthread &&
            (frame = py.PyThreadState_GetFrame(state)))
            return frame;
    }
    return NULL;
}

/* post: bytes copied, whole characters only. `end`: of a text too long, its end. */
static uint16_t copy_text(void *code, void *name, char *out, size_t room, bool end)
{
    ssize_t size = 0;
    void *text = py.PyObject_GetAttr(code, name);
    const char *bytes = text ? py.PyUnicode_AsUTF8AndSize(text, &size) : NULL;
    size_t n = bytes && size > 0 ? (size_t)size : 0, from = 0;
    if (n > room) {
        from = end ? n - room : 0;
        while (end && from < n && (bytes[from] & 0xc0) == 0x80)
            from++;
        n = end ? n - from : room;
        while (!end && n && (bytes[n] & 0xc0) == 0x80)
            n--;
    }
    if (n)
        memcpy(out, bytes + from, n);
    if (!bytes)
        py.PyErr_Clear(); /* a name that is not Unicode */
    if (text)
        py.Py_DecRef(text);
    return (uint16_t)n;
}

static void read_frame(void *frame, struct gw_py_frame *out)
{
    void *code = py.PyFrame_GetCode(frame);
    int line = py.PyFrame_GetLineNumber(frame);
    out->line = line > 0 ? (uint32_t)line : 0;
    out->file_size = copy_text(code, name_of_file, out->file, GW_PY_FILE_MAX, true);
    out->function_size =
        copy_text(code, name_of_function, out->function, GW_PY_FUNCTION_MAX, false);
    py.Py_DecRef(code);
}

unsigned gw_python_walk(uint64_t pthread, struct gw_py_stack *out)
{
    /* Nobody sees it off: the GIL is ours until it is on again. */
    bool collects = py.gc_disable && py.gc_disable();
    void *frame = frame_of(pthread);
    out->count = 0;
    out->of_main = !frame;
    if (!frame && pthread != main_thread)
        frame = frame_of(main_thread);
    while (frame && out->count < GWT_STACK_FRAMES_MAX) {
        read_frame(frame, &out->frames[out->count++]);
        void *back = py.PyFrame_GetBack(frame);
        py.Py_DecRef(frame);
        frame = back;
    }
    if (frame)
        py.Py_DecRef(frame);
    if (collects)
        py.gc_enable();
    return out->count;
}

/* ---- forks and the end of the process ---------------------------- */

/* In a program with one Python thread, C code that released the GIL may fork and take it again
 * in the child: it must not find it taken by a thread that is not there. */
void gw_python_fork_begins(void)
{
    const struct timespec nap = {.tv_nsec = 50000};
    for (int i = 0; i < 400 && !change(IDLE, FORKING); i++) {
        if (gw_load_acquire(&phase) != BUSY || py.PyGILState_Check())
            return;
        nanosleep(&nap, NULL);
    }
}

void gw_python_fork_ended(void)
{
    change(FORKING, IDLE);
}

void gw_python_forget(void)
{
    if (phase != OVER)
        phase = ABSENT;
    request = NONE;
    queued = 0;
}

void gw_python_stop(void)
{
    const struct timespec nap = {.tv_nsec = 50000};
    for (int i = 0; i < 100 && !change(IDLE, OVER) && gw_load_acquire(&phase) == BUSY; i++)
        nanosleep(&nap, NULL);
}
