/* A main() for fuzz targets built without libFuzzer, so that any compiler can replay a corpus:
 *     fuzz_reader FILE...
 */
#ifndef FUZZ_REPLAY_H
#define FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold whatever the input. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Weak, so that libFuzzer's own replaces it. */
__attribute__((weak)) int main(int argc, char **argv)
{
    static uint8_t bytes[1 << 20];

    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");

        if (!f) {
            perror(argv[i]);
            return 1;
        }
        LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof(bytes), f));
        fclose(f);
    }
    return 0;
}

#endif
