/* The Python interpreter of the process, as far as a stack sampler needs it. */
#ifndef GW_PYTHON_H
#define GW_PYTHON_H

#include "gw.h"

#pragma GCC visibility push(hidden)

#define GW_PY_FILE_MAX     512u /* of a longer path, the end */
#define GW_PY_FUNCTION_MAX 192u /* of a longer name, the beginning */

struct gw_py_frame {
    uint32_t line;
    uint16_t file_size;
    uint16_t function_size;
    char file[GW_PY_FILE_MAX];
    char function[GW_PY_FUNCTION_MAX];
};

struct gw_py_stack { /* innermost frame first */
    uint32_t count;
    bool of_main; /* the thread has no frames, these are the main thread's */
    struct gw_py_frame frames[GWT_STACK_FRAMES_MAX];
};

/* post: true if there is an interpreter that can be sampled; else *why tells what speaks
 *       against the one there is, NULL if there is none. */
bool gw_python_find(const char **why);

/* Has the main thread register, at its next bytecode, what ends the sampling before the
 * interpreter does; until then gw_python_do() refuses.
 * pre:  gw_python_find(). post: false: it cannot be. */
bool gw_python_introduce(void);

/* Runs `job` with the GIL: on the main thread if that is at a bytecode soon, else on this one.
 * pre:  no lock of ours is held. post: false: it is not known to be safe, and was not run. */
bool gw_python_do(void (*job)(void));
bool gw_python_over(bool *failed); /* no more stacks; failed: the interpreter is not as expected */

/* pre:  in a job. post: frames of the thread whose pthread_self() this is, else
 *       of the main thread; 0: neither runs Python. */
unsigned gw_python_walk(uint64_t pthread, struct gw_py_stack *out);

/* Around fork(): the GIL is not ours when a thread without it forks. */
void gw_python_fork_begins(void);
void gw_python_fork_ended(void);
void gw_python_forget(void); /* in a forked child */
void gw_python_stop(void);   /* at exit: bounded wait for a stack that is being taken */

#pragma GCC visibility pop
#endif
