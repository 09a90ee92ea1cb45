/* The checks of gpuwait doctor; each says one line or more. */
#ifndef DOCTOR_H
#define DOCTOR_H

enum doctor_grade { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

void doctor_says(enum doctor_grade grade, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void doctor_library(void);
void doctor_glibc(void);
void doctor_driver(void);
void doctor_preload(void); /* other libraries in LD_PRELOAD */
void doctor_options(void); /* GPUWAIT_* that nobody reads */
void doctor_clock(void);
void doctor_shm(void);
void doctor_directory(const char *path);

#endif
