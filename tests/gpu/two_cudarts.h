/* The half of two_cudarts that is linked to libcudart.so.12. */
#ifndef GPUWAIT_TESTS_TWO_CUDARTS_H
#define GPUWAIT_TESTS_TWO_CUDARTS_H

/* One round of work; returns a checksum of its result, and the runtime's version. */
extern "C" unsigned long long two_cudarts_old(int *version);

#endif
