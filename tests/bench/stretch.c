/* stretch RECORDING EVENTS OUT: writes OUT, the recording over and over up to so many events. */
#include "stretch.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    struct stretched s;
    int rc = argc == 4 ? stretch_load(&s, argv[1]) : -EINVAL;

    if (!rc)
        rc = stretch_write(&s, argv[3], strtoull(argv[2], NULL, 10));
    if (rc)
        fprintf(stderr, "stretch RECORDING EVENTS OUT: %s\n", strerror(-rc));
    return rc != 0;
}
