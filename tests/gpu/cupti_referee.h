/* CUPTI activity collection for the CUDA C workloads. */
#ifndef GPUWAIT_TESTS_CUPTI_REFEREE_H
#define GPUWAIT_TESTS_CUPTI_REFEREE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Start collecting kernels, copies and memsets.  0, or -1 after a message on stderr. */
int cupti_referee_start(void);

/* Stop, and write what was collected to path as Chrome trace JSON for truth.py.
 * The device must be idle.  0, or -1 after a message, also when CUPTI dropped records. */
int cupti_referee_stop(const char *path);

#ifdef __cplusplus
}
#endif

#endif
